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
	lane       *lane
	bucket     *bucket        // nil: it is to be tried
	inArrivals bool           // it is among the arrivals of its lane
	stand      stand          // of its tasks, when it was refused
	parked     cluster.Parked // while it is in no bucket
	refusal    *Refusal
	said       uint64 // when the refusal was said
}

// stand is how many of a job's own tasks are where, and which of them wait. What it loses itself leaves
// it with other forms, other domains, and less to keep to.
type stand struct {
	chosen, placed, pending, ended int
	which                          uint64 // spells which tasks are pending: others may request other shapes
}

func standOf(j *cluster.Job) stand {
	out := stand{chosen: j.Chosen, placed: j.Placed(), ended: j.Ended()}
	for i, t := range j.Tasks() {
		if t.Status == cluster.Pending {
			out.pending++
			out.which = (out.which ^ uint64(i+1)) * 1099511628211
		}
	}
	return out
}

// bucket is refused jobs of one queue that nothing tells apart that decides: where
// one of them has no place, none has. What was found when one was refused last
// holds for all, and the first of them is tried for all.
type bucket struct {
	key    string
	lane   *lane
	jobs   []*waiter // in the order of their turn
	parked cluster.Parked
	timer  int // place among the timers; -1: none

	refusal   *Refusal // of the last that was tried because something changed
	said      uint64
	version   uint64 // of the State, when one was refused last
	home      cluster.Key
	asks      []*asked      // the shapes of its tasks
	blockers  []string      // queues whose bounds were in the way
	permanent bool          // waiting does not help
	before    bool          // something was in the way before any node was looked at
	loose     bool          // any change of a node may help
	wakes     Wake          // what else may help, by the hints of plugins
	known     knownVersions // as of when one was refused last
	recheck   bool          // a node would do, and something else was in the way

	toTry  *waiter // the one to be tried
	inLine bool    // in line
	forced bool    // to be tried whatever nodes say
	ahead  *waiter // in the heap of all that are parked: the first whose turn is to come
	passed moment  // when one of it had its turn
}

// known is up to where a reader knows the State.
type knownVersions struct{ commits, jobs, queues uint64 }

func knownOf(v cluster.View) knownVersions {
	r := v.Recent()
	return knownVersions{r.Commits(), r.JobsVersion(), r.QueuesVersion()}
}

// hinted reports whether something was changed for good since one was refused last that
// may help, by the hints of plugins.
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

// asked is a shape that parked jobs ask for.
type asked struct {
	id        int
	task      *cluster.Task // one of them, as it was
	buckets   int
	permanent int   // of these, refused for good: a node that may do later is news to them
	fresh     []int // slots with room since the last session that take the shape
}

// kinship spells what decides about a job, so that jobs that spell alike are
// interchangeable. A job like no other has its own ID.
func (b *backlog) kinship(j *cluster.Job) string {
	k := b.keyBuffer[:0]
	if j.Chosen >= 0 || j.PreemptionDelay > 0 || len(j.Affinity)+len(j.Displaced) > 0 || slices.ContainsFunc(j.Alternatives, hasSubgroupsOrTopology) {
		return "=" + j.ID
	}
	k = appendText(k, j.Namespace)
	k = appendText(k, j.Set.Name)
	k = binary.AppendVarint(k, int64(j.Set.Desired))
	k = binary.AppendVarint(k, int64(j.Priority))
	k = appendBool(k, j.Preemptible)
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

// tied reports whether a form has parts or domains of its own.
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

// maxShapeIDs is how many shapes have a number at a time.
const maxShapeIDs = 1 << 16

// shapeID numbers shapes. A shape whose number was forgotten gets another, and
// jobs that ask for it are then like those that came since.
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

// index is the place of the turn in the bucket, or where it belongs.
func (k *bucket) index(o *order, t turn) (int, bool) {
	return slices.BinarySearchFunc(k.jobs, t, func(e *waiter, t turn) int { return o.compareTurns(e.turn, t) })
}

// openShapes visits one pending task of each shape in the forms that the job may still take.
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
