package engine

import (
	"math"

	"github.com/berth-project/berth/cluster"
)

// occupancies keeps summaries of nodes. A search for victims reads those of 100,000 nodes in a
// few milliseconds. A summary is computed when it is first used, and again after the node
// changed. The engine keeps them from session to session.
type occupancies struct {
	view    cluster.View
	nodes   uint64 // the version of nodes that they reflect
	jobs    uint64 // the version of jobs that they reflect
	bySlot  []occupancy
	classes []cluster.Class // by number
	numbers map[cluster.Class]int32
	most    int               // how many classes may have numbers before it is checked whether most of them are gone
	summary cluster.Occupancy // of the node that was read last
	jobsOf  memory[jobOnNode]
	partsOf memory[partOnNode]
}

// occupancy is a cluster.Occupancy in less memory.
type occupancy struct {
	jobs []jobOnNode
	// parts has the other figures of the same jobs. It is empty if every job runs one task,
	// which is on the node, and has no surplus tasks.
	parts    []partOnNode
	unfilled int32
	known    bool // the node has not changed since it was read
	measured bool // the node has not changed since milli was computed
	// milli is how much of the node's devices would be free if all preemptible tasks were evicted,
	// in thousandths of a device; -1 if there is no node.
	milli int64
}

// jobOnNode and partOnNode are a cluster.JobOnNode in less memory. Numbers that are too large
// are lowered, so that costs remain lower bounds. A survey reads jobOnNode of all nodes.
type jobOnNode struct {
	newest                       int64
	class, each, devices, widest int32 // class is the number of the class
}

type partOnNode struct {
	tasks, freed, count int32
	whole               bool
}

// part returns the other figures of the job with the index.
func (o *occupancy) part(job int) partOnNode {
	if len(o.parts) == 0 {
		return partOnNode{tasks: 1, freed: o.jobs[job].each, count: 1, whole: true}
	}
	return o.parts[job]
}

// freeable returns how much of the node's devices would be free if all preemptible tasks were
// evicted, in thousandths of a device. It returns -1 if there is no node in the slot.
func (o *occupancies) freeable(slot int) int64 {
	at := &o.bySlot[slot]
	if !at.measured {
		at.milli, at.measured = -1, true
		if n := o.view.At(slot); n != nil {
			at.milli = n.PreemptibleMilli() + idleOn(n)
		}
	}
	return at.milli
}

// tasks returns how many tasks of the node might be victims.
func (o *occupancy) tasks() int {
	if len(o.parts) == 0 {
		return len(o.jobs)
	}
	sum := 0
	for i := range o.parts {
		sum += int(o.parts[i].count)
	}
	return sum
}

// refresh takes note of what changed since the last call. State must not change until the
// last summary is read.
func (o *occupancies) refresh(view cluster.View) {
	recent := view.Recent()
	if o.view != view || o.mostAreGone() {
		*o = occupancies{view: view, numbers: map[cluster.Class]int32{}, most: 1000}
	} else {
		forget := func(slot int) {
			if slot < len(o.bySlot) {
				o.bySlot[slot].known, o.bySlot[slot].measured = false, false
			}
		}
		recent.Nodes(o.nodes, forget)
		recent.Jobs(o.jobs, func(slot int) {
			if job := view.JobAt(slot); job != nil {
				view.Classes().Linked(job, forget)
			}
		})
	}
	if more := recent.Slots() - len(o.bySlot); more > 0 {
		o.bySlot = append(o.bySlot, make([]occupancy, more)...)
	}
	o.nodes, o.jobs, o.summary = view.Version(), recent.JobsVersion(), cluster.Occupancy{Jobs: o.summary.Jobs[:0]}
}

// mostAreGone reports whether no task runs any more of most classes that have a number.
func (o *occupancies) mostAreGone() bool {
	if len(o.classes) <= o.most {
		return false
	}
	running := 0
	o.view.Classes().Visit(func(cluster.Class) bool { running++; return true })
	o.most = 2 * len(o.classes)
	return len(o.classes) > 2*running
}

// of returns the summary of the node in the slot.
func (o *occupancies) of(slot int) *occupancy {
	at := &o.bySlot[slot]
	if at.known {
		return at
	}
	from := &o.summary
	o.view.Classes().Occupancy(slot, from)
	*at = occupancy{jobs: at.jobs[:0], parts: at.parts[:0], unfilled: int32(from.Unfilled), known: true, measured: at.measured, milli: at.milli}
	if cap(at.jobs) < len(from.Jobs) {
		at.jobs = o.jobsOf.list(len(from.Jobs))
	}
	single := true
	for i := range from.Jobs {
		j := &from.Jobs[i]
		at.jobs = append(at.jobs, jobOnNode{newest: j.Newest, class: o.number(j.Job.Class()), each: lowered(j.Each), devices: int32(j.Devices), widest: int32(j.Widest)})
		single = single && j.Whole && j.Tasks == 1 && j.Count == 1 && j.Freed == j.Each
	}
	if single {
		return at
	}
	if cap(at.parts) < len(from.Jobs) {
		at.parts = o.partsOf.list(len(from.Jobs))
	}
	for i := range from.Jobs {
		j := &from.Jobs[i]
		at.parts = append(at.parts, partOnNode{tasks: lowered(int64(j.Tasks)), freed: lowered(j.Freed), count: int32(j.Count), whole: j.Whole})
	}
	return at
}

// lowered returns the lower of n and the largest int32.
func lowered(n int64) int32 { return int32(min(n, math.MaxInt32)) }

// memory has lists that are parts of larger ones, so that there are few allocations.
type memory[T any] struct{ unused []T }

// list returns an empty list with room for so many items.
func (m *memory[T]) list(items int) []T {
	if len(m.unused) < items {
		m.unused = make([]T, max(items, 4096))
	}
	out := m.unused[:0:items]
	m.unused = m.unused[items:]
	return out
}

// number returns the number of the class.
func (o *occupancies) number(c cluster.Class) int32 {
	n, known := o.numbers[c]
	if !known {
		n = int32(len(o.classes))
		o.numbers[c] = n
		o.classes = append(o.classes, c)
	}
	return n
}
