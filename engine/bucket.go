package engine

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// waiter is a pending job in the backlog.
type waiter struct {
	turn
	lane          *lane
	bucket        *bucket            // nil if the job is not parked and is to be tried
	inArrivals    bool               // it is among the arrivals of its lane
	earmarked     *cluster.Earmarked // of the job, when it was last filed: the order of turns may depend on it
	taskCounts    taskCounts         // of the job's tasks, when it was refused
	parked        cluster.Parked     // its back-off while it is in no bucket; a bucket has its own
	refusal       *Refusal
	refusalNumber uint64 // the number of the refusal, by backlog.refusalNumber
}

// taskCounts counts the tasks of a job by what has become of them. If it changes, the job must be
// tried again: it may now take other alternatives or domains.
type taskCounts struct {
	chosen, placed, pending, ended int
	which                          uint64 // a hash of which tasks are pending, since they may request other shapes
}

func taskCountsOf(j *cluster.Job) taskCounts {
	out := taskCounts{chosen: j.Chosen, placed: j.Placed(), ended: j.Ended()}
	for i, t := range j.Tasks() {
		if t.Status == cluster.Pending {
			out.pending++
			out.which = (out.which ^ uint64(i+1)) * 1099511628211
		}
	}
	return out
}

// bucket holds refused jobs of one queue that are equal in everything that a decision
// depends on: if one of them cannot be placed, none can. The result of the last attempt to
// place one of them holds for all, and only the first of them is tried. If its refusal has
// another reason than before, the next job is tried too, so that it gets its own refusal.
type bucket struct {
	key    string
	set    string // the name of the set of its jobs; "" if they are in none
	lane   *lane
	jobs   []*waiter // in the order of their turns
	parked cluster.Parked
	timer  int // its index among the timers; -1 if it has none

	refusal       *Refusal // of the job that was last tried because something changed
	refusalNumber uint64
	version       uint64           // the version of State when a job was last refused
	home          cluster.GroupKey // the node group of the jobs' set; zero if it has none
	asks          []*asked         // the shapes of its tasks
	blockers      []string         // queues that prevented the placement, by their limit or share
	permanent     bool             // the refusal is permanent
	before        bool             // a PreFilter rejected the job before any node was considered
	// examineAlways means that a change of any node may help, because a plugin gave the hint
	// WakeNodes or no hint. The bucket is examined in every session, and its first job is
	// tried if any node changed since the last refusal and no PreFilter rejects the job.
	examineAlways bool
	wakes         Wake          // what else may help, by the hints of plugins
	known         knownVersions // when a job was last refused
	recheck       bool          // a PreFilter rejected the job since, so that nodes that changed meanwhile must be checked as well

	toTry  *waiter // the job to be tried, while inLine is set
	inLine bool    // it is in the heap lane.inLine
	forced bool    // toTry is tried even if no node has room for it
	ahead  *waiter // while it is in the parkedHeap: its first job that has not had its turn
	passed moment  // when one of its jobs last had its turn
}

// knownVersions says as of which versions a reader knows State.
type knownVersions struct{ commits, jobs, queues uint64 }

func knownOf(v cluster.View) knownVersions {
	r := v.Recent()
	return knownVersions{r.Commits(), r.JobsVersion(), r.QueuesVersion()}
}

// wokenByHint reports whether a change that the hints of plugins name was committed since a
// job of the bucket was last refused.
func (k *bucket) wokenByHint(b *backlog) bool {
	if k.wakes == 0 {
		return false
	}
	if k.wakes&WakeTime != 0 && b.alarmDue {
		return true
	}
	now := knownOf(b.view)
	return now.commits != k.known.commits && (k.wakes&WakeJobs != 0 && now.jobs != k.known.jobs || k.wakes&WakeQueues != 0 && now.queues != k.known.queues)
}

// asked is a shape that parked jobs request.
type asked struct {
	id         int           // the shape's index in bitsets
	task       *cluster.Task // a copy of one task of the shape
	buckets    int           // how many buckets request the shape
	permanent  int           // how many of these were refused permanently; they also wake for a node that may have room later
	freshNodes []int         // the slots of nodes that have got room for the shape since the last session
}

// bucketKey encodes everything that a decision about the job depends on. Jobs with equal
// results are interchangeable. A job that cannot be interchangeable with another gets a
// result of its own, made of its ID.
func (b *backlog) bucketKey(j *cluster.Job) string {
	k := b.keyBuffer[:0]
	if j.Chosen >= 0 || j.PreemptionDelay > 0 || len(j.Affinity)+len(j.Displaced) > 0 || j.Earmarked != nil || slices.ContainsFunc(j.Alternatives, hasSubgroupsOrTopology) {
		return "=" + j.ID
	}
	k = appendText(k, j.Namespace)
	k = appendText(k, j.Set.Name)
	k = binary.AppendVarint(k, int64(j.Set.Desired))
	k = binary.AppendVarint(k, int64(j.Priority))
	k = appendBool(k, j.Preemptible)
	k = binary.AppendVarint(k, roundedRunTime(j.RunFor)) // see keeper.mayUse
	k = binary.AppendUvarint(k, uint64(len(j.Labels)))
	for _, name := range slices.Sorted(maps.Keys(j.Labels)) {
		k = appendText(appendText(k, name), j.Labels[name])
	}
	for i := range j.Alternatives {
		k = b.appendAlternative(k, &j.Alternatives[i])
	}
	b.keyBuffer = k
	return string(k)
}

// hasSubgroupsOrTopology reports whether the alternative has subgroups or a topology. Such
// jobs are never treated as interchangeable.
func hasSubgroupsOrTopology(a cluster.Alternative) bool {
	return len(a.Subgroups) > 0 || !a.Topology.None()
}

func (b *backlog) appendAlternative(k []byte, a *cluster.Alternative) []byte {
	k = appendText(k, a.Name)
	k = binary.AppendVarint(k, int64(a.Min))
	k = appendBool(k, a.Running)
	if k = appendBool(k, a.Whole != nil); a.Whole != nil {
		w := a.Whole
		for _, v := range [...]int64{int64(w.Replicas), int64(w.NodesPerReplica), int64(w.Memory), int64(w.Usable)} {
			k = binary.AppendVarint(k, v)
		}
		k = appendBool(k, w.Apart)
		if k = appendBool(k, w.Only != nil); w.Only != nil {
			for _, s := range [...]string{w.Only.Product, w.Only.Resource, w.Only.Strategy} {
				k = appendText(k, s)
			}
			for _, v := range [...]int64{int64(w.Only.Count), w.Only.Memory, int64(w.Only.Replicas)} {
				k = binary.AppendVarint(k, v)
			}
		}
	}
	k = binary.AppendUvarint(k, uint64(len(a.Tasks)))
	for _, t := range a.Tasks {
		k = binary.AppendUvarint(k, b.shapeID(t.Shape))
		k = appendText(appendText(k, t.Name), t.Role)
		k = binary.AppendVarint(k, int64(t.Index))
	}
	return k
}

// maxShapeIDs is how many shapes have a number at a time, which bounds memory.
const maxShapeIDs = 1 << 16

// shapeID returns a number for the shape. When there are too many, all numbers are dropped
// and shapes get new ones. Jobs of one shape may then be in two buckets, which costs time
// and changes no decision.
func (b *backlog) shapeID(s *cluster.Shape) uint64 {
	id, known := b.shapeIDs[s]
	if !known {
		if len(b.shapeIDs) >= maxShapeIDs {
			clear(b.shapeIDs)
		}
		b.lastShapeID++
		id = b.lastShapeID
		b.shapeIDs[s] = id
	}
	return id
}

func appendText(k []byte, s string) []byte {
	return append(binary.AppendUvarint(k, uint64(len(s))), s...)
}

func appendBool(k []byte, v bool) []byte {
	if v {
		return append(k, 1)
	}
	return append(k, 0)
}

// index returns the index of the turn in the bucket, and whether it is there. If it is not,
// the index is where it would be inserted.
func (k *bucket) index(o *order, t turn) (int, bool) {
	return slices.BinarySearchFunc(k.jobs, t, func(e *waiter, t turn) int { return o.compareTurns(e.turn, t) })
}

// openShapes visits one pending task of each shape in the alternatives that the job may
// still take, until visit returns false.
func openShapes(j *cluster.Job, visit func(*cluster.Task) bool) {
	var seen []*cluster.Shape
	for i := range j.Alternatives {
		if j.Chosen >= 0 && i != j.Chosen || j.Chosen < 0 && j.Alternatives[i].Running {
			continue
		}
		for _, t := range j.Alternatives[i].Tasks {
			if t.Status != cluster.Pending || slices.Contains(seen, t.Shape) {
				continue
			}
			seen = append(seen, t.Shape)
			if !visit(t) {
				return
			}
		}
	}
}
