package cluster

import (
	"math"
	"slices"
	"strings"
)

// Queue holds the jobs that name it, and says what they are entitled to together.
// Queues form a tree; jobs are in its leaves. A queue has terms for a resource if its
// Quota, Limits or OverQuotaWeight name the resource.
type Queue struct {
	Name     string `json:"name,omitempty"`     // unique in a State
	Parent   string `json:"parent,omitempty"`   // the queue above it; "" for a queue at the top of the tree
	Tier     Tier   `json:"tier,omitempty"`     // which queues of other tiers may take room from it
	Priority int32  `json:"priority,omitempty"` // among its siblings: what is left after quotas is offered to a higher priority first
	Created  int64  `json:"created,omitempty"`  // when it was created, in nanoseconds; it orders queues by age
	// Weight is the proportion in which the queue and its siblings divide what is left
	// after quotas. It holds for every resource that OverQuotaWeight does not name. The
	// value 0 means that no weight is given, and the weight is 1.
	Weight int64 `json:"weight,omitempty"`
	// Weightless is true for a queue with the weight 0: it gets nothing beyond its quota of
	// any resource that OverQuotaWeight does not name. Weight is then ignored.
	Weightless bool `json:"weightless,omitempty"`
	// OverQuotaWeight is the weight for single resources. Unlike Weight, the value 0 is the
	// weight 0: the queue gets nothing of the resource beyond its quota.
	OverQuotaWeight Resources `json:"overQuotaWeight,omitempty"`
	// Quota is what the queue is entitled to before any queue gets more than its own
	// quota. For a resource that it does not name, see View.Quotas. The value
	// Unlimited entitles the queue to all that the cluster has.
	Quota Resources `json:"quota,omitempty"`
	// Limits is the most that the tasks of the queue may hold together. A resource that
	// it does not name is not limited. A resource with limit 0 cannot be used.
	Limits Resources `json:"limits,omitempty"`
	// MinRunBeforePreempt protects tasks of the queue from preemption and from moves for
	// this long after their start, in nanoseconds. 0 means that the value of the queue
	// above applies.
	MinRunBeforePreempt int64 `json:"minRunBeforePreempt,omitempty"`
	MinRunBeforeReclaim int64 `json:"minRunBeforeReclaim,omitempty"` // the same for reclaim
	// Past is what the queue used in earlier intervals. Policies may let it count
	// against the queue.
	Past []Usage `json:"past,omitempty"`

	// Used is what the tasks of the queue and of the queues below it hold, sorted by
	// name. Devices are in thousandths. They are counted under their resource name, and
	// in addition under the name of their product if any queue has terms for it. MIG
	// slices for which the queue has no terms also count as their fraction of
	// nvidia.com/gpu.
	Used Resources `json:"-"`
	// UsedByFirm is the part of Used that jobs hold that are not preemptible.
	UsedByFirm Resources `json:"-"`

	current  currentUse // use since the last interval of Past
	slot     int
	revision uint64    // of the last QueuePut, as its source numbers them
	loose    bool      // see Loose
	children []string  // names of the queues directly below it, sorted
	quotas   Resources // see View.Quotas
}

// Usage is what a queue held on average between two times, which are in nanoseconds.
type Usage struct {
	From      int64     `json:"from,omitempty"`
	To        int64     `json:"to,omitempty"`
	Resources Resources `json:"resources,omitempty"`
}

// Unlimited is the quota of a queue that is entitled to all that the cluster has. A sum
// of quotas that overflows is Unlimited as well.
const Unlimited = math.MaxInt64

// DefaultQueue holds the jobs that name no queue. It has no limits.
const DefaultQueue = "default"

// Loose reports whether the queue is not part of the tree, because a queue above it is
// not known, or because its parents form a cycle. Its jobs are not pending until that
// is corrected.
func (q *Queue) Loose() bool { return q.loose }

// Leaf reports whether no queue is below the queue. Only leaves may have jobs.
func (q *Queue) Leaf() bool { return len(q.children) == 0 }

// Slot returns the index of the queue in State's table of queues. It stays the same when
// QueuePut changes the spec of the queue.
func (q *Queue) Slot() int { return q.slot }

// Revision returns the revision of the last QueuePut that reported the queue, as its source
// numbers them; 0: the source has no revisions.
func (q *Queue) Revision() uint64 { return q.revision }

// WeightOf returns the weight with which the queue gets a part of the resource beyond its
// quota. With weight 0 it gets nothing beyond its quota.
func (q *Queue) WeightOf(resource string) int64 {
	for i := range q.OverQuotaWeight {
		if q.OverQuotaWeight[i].Name == resource {
			return q.OverQuotaWeight[i].Value
		}
	}
	if q.Weightless {
		return 0
	}
	return max(1, q.Weight)
}

// charge adds v to the queue's use of the resource. v is negative when the task releases
// what it holds.
func (q *Queue) charge(t *Task, name string, v int64) {
	q.Used = q.Used.plus(name, v)
	if !t.Job.Preemptible {
		q.UsedByFirm = q.UsedByFirm.plus(name, v)
	}
}

// plus adds v to the amount of the resource, in place. An amount of 0 is removed from
// the list.
func (r Resources) plus(name string, v int64) Resources {
	if v == 0 {
		return r
	}
	for i := range r {
		if r[i].Name == name {
			if r[i].Value += v; r[i].Value == 0 {
				return slices.Delete(r, i, i+1)
			}
			return r
		}
	}
	if cap(r) == 0 {
		r = make(Resources, 0, 4) // cpu, memory, devices and their memory
	}
	i, _ := slices.BinarySearchFunc(r, name, func(x Amount, n string) int { return strings.Compare(x.Name, n) })
	return slices.Insert(r, i, Amount{name, v})
}
