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
	unused  []jobOnNode       // memory for summaries
}

// occupancy is a cluster.Occupancy in less memory.
type occupancy struct {
	jobs     []jobOnNode
	unfilled int32
	known    bool // the node has not changed since it was read
}

// jobOnNode is a cluster.JobOnNode in less memory.
type jobOnNode struct {
	newest                 int64
	class                  int32 // the number of the class
	tasks, freed, each     int32 // numbers that are too large are lowered, so that costs remain lower bounds
	count, devices, widest int32
	whole                  bool
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
				o.bySlot[slot].known = false
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
	at.known, at.unfilled = true, int32(from.Unfilled)
	if at.jobs = at.jobs[:0]; cap(at.jobs) < len(from.Jobs) {
		at.jobs = o.memory(len(from.Jobs))
	}
	for i := range from.Jobs {
		j := &from.Jobs[i]
		at.jobs = append(at.jobs, jobOnNode{newest: j.Newest, class: o.number(j.Job.Class()), whole: j.Whole,
			tasks: int32(min(j.Tasks, math.MaxInt32)), freed: int32(min(j.Freed, math.MaxInt32)), each: int32(min(j.Each, math.MaxInt32)),
			count: int32(j.Count), devices: int32(j.Devices), widest: int32(j.Widest)})
	}
	return at
}

// memory returns an empty list with room for so many jobs. Lists are parts of larger ones, so
// that there are few allocations.
func (o *occupancies) memory(jobs int) []jobOnNode {
	if len(o.unused) < jobs {
		o.unused = make([]jobOnNode, max(jobs, 4096))
	}
	out := o.unused[:0:jobs]
	o.unused = o.unused[jobs:]
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
