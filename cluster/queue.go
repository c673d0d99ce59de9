package cluster

import (
	"math"
	"slices"
	"strings"
)

// Queue orders the jobs that name it and limits their use. Queues form a tree; jobs
// are in its leaves.
type Queue struct {
	Name     string `json:"name,omitempty"`     // unique in a State
	Parent   string `json:"parent,omitempty"`   // "" for a queue at the top
	Tier     Tier   `json:"tier,omitempty"`     // its standing against queues of other tiers
	Priority int32  `json:"priority,omitempty"` // among its siblings: a higher one gets what quotas leave first
	Created  int64  `json:"created,omitempty"`  // orders queues by age, in nanoseconds
	// Weight divides what is left over between siblings, for every resource
	// that OverQuotaWeight does not name; 0 stands for 1. A Weightless queue has a
	// weight of 0: it gets nothing beyond its quota.
	Weight     int64 `json:"weight,omitempty"`
	Weightless bool  `json:"weightless,omitempty"` // its weight is 0
	// OverQuotaWeight is the weight for single resources. A weight of 0 is one.
	OverQuotaWeight Resources `json:"overQuotaWeight,omitempty"`
	// Quota is what the queue deserves before any queue gets more than its own. A
	// resource that is absent has no quota of its own; with Unlimited the queue
	// deserves as much as there is.
	Quota Resources `json:"quota,omitempty"`
	// Limits bound what the queue's tasks hold together; a resource that is
	// absent is not limited, one with limit 0 cannot be used.
	Limits Resources `json:"limits,omitempty"`
	// MinRunBeforePreempt protects its tasks from Preempt and from moves for so long
	// after they have started, in nanoseconds; 0: as the queue above says.
	MinRunBeforePreempt int64 `json:"minRunBeforePreempt,omitempty"`
	MinRunBeforeReclaim int64 `json:"minRunBeforeReclaim,omitempty"` // the same, from Reclaim
	// Past is what the queue used before, for policies that let that count.
	Past []Usage `json:"past,omitempty"`

	// Used is what its tasks and those of the queues below it hold, sorted by
	// name; devices in thousandths, under their resource name and under those of
	// products that some queue has terms for. MIG slices that the queue has no terms
	// for count as their fraction of nvidia.com/gpu as well.
	Used Resources `json:"-"`
	// Firm is the part of Used that jobs hold which are not preemptible.
	Firm Resources `json:"-"`

	current  currentUse // since the last interval of Past
	slot     int
	revision uint64
	loose    bool      // a queue above it is not known, or is below it: its jobs wait
	children []string  // names of the queues below it, in order
	deserved Resources // see Deserved
}

// Usage is what a queue held on average from one time to another, in nanoseconds.
type Usage struct {
	From      int64     `json:"from,omitempty"`
	To        int64     `json:"to,omitempty"`
	Resources Resources `json:"resources,omitempty"`
}

// Unlimited is the quota of a queue that deserves as much as there is. Sums of
// quotas that are too large to count come to it.
const Unlimited = math.MaxInt64

// DefaultQueue holds the jobs that name no queue. It has no limits.
const DefaultQueue = "default"

// Loose reports whether the queue is not part of the tree: a queue above it is not
// known, or is below it. Its jobs wait.
func (q *Queue) Loose() bool { return q.loose }

// Leaf reports whether the queue may have jobs: none is below it.
func (q *Queue) Leaf() bool { return len(q.children) == 0 }

// Slot is the queue's number in its State. New terms keep it.
func (q *Queue) Slot() int { return q.slot }

// WeightOf is the queue's weight for what is left over of the resource; 0: it gets none of it.
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

// charge adds v, which the task holds, to what the queue uses.
func (q *Queue) charge(t *Task, name string, v int64) {
	q.Used = q.Used.plus(name, v)
	if !t.Job.Preemptible {
		q.Firm = q.Firm.plus(name, v)
	}
}

// plus adds v in place; what falls back to 0 leaves no trace.
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
	i, _ := slices.BinarySearchFunc(r, name, func(x Amount, n string) int { return strings.Compare(x.Name, n) })
	return slices.Insert(r, i, Amount{name, v})
}
