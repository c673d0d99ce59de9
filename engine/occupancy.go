package engine

import (
	"math"

	"github.com/berth-project/berth/cluster"
)

// occupancies keeps a summary of every node that has running preemptible tasks. A search for
// victims reads all of them in a few milliseconds, even if there are 100,000 nodes. They are
// computed when they are first used. After that, only nodes that changed are read again. They
// live as long as the engine.
type occupancies struct {
	view    cluster.View
	nodes   uint64 // the version of nodes that they reflect
	jobs    uint64 // the version of jobs that they reflect
	bySlot  []occupancy
	classes []cluster.Class // by number
	numbers map[cluster.Class]int32
	most    int // how many classes may have numbers before all are numbered again
	scratch cluster.Occupancy
}

// occupancy is a cluster.Occupancy in less memory.
type occupancy struct {
	unfilled int32
	jobs     []jobOnNode
}

// jobOnNode is a cluster.JobOnNode in less memory.
type jobOnNode struct {
	newest                 int64
	class                  int32 // the number of the class
	tasks, freed, each     int32 // numbers that are too large are lowered, so that costs remain lower bounds
	count, devices, widest int32
	whole                  bool
}

// refresh takes in what changed since the last call.
func (o *occupancies) refresh(view cluster.View) {
	recent := view.Recent()
	if o.view != view || o.numbers == nil || len(o.classes) > o.most {
		*o = occupancies{view: view, numbers: map[cluster.Class]int32{}}
		o.bySlot = make([]occupancy, recent.Slots())
		for slot := range o.bySlot {
			o.read(slot)
		}
		o.most = 2*len(o.classes) + 1000
	} else {
		for len(o.bySlot) < recent.Slots() {
			o.bySlot = append(o.bySlot, occupancy{})
		}
		recent.Nodes(o.nodes, o.read)
		recent.Jobs(o.jobs, func(slot int) { // a new spec may change the class of running tasks
			job := view.JobAt(slot)
			if job == nil || !job.Preemptible {
				return
			}
			for _, t := range job.Tasks() {
				if t.Runs() && t.Node != nil {
					o.read(t.Node.Slot())
				}
			}
		})
	}
	o.nodes, o.jobs = view.Version(), recent.JobsVersion()
}

// read reads the node in the slot.
func (o *occupancies) read(slot int) {
	o.view.Classes().Occupancy(slot, &o.scratch)
	at := &o.bySlot[slot]
	at.unfilled, at.jobs = int32(o.scratch.Unfilled), at.jobs[:0]
	for i := range o.scratch.Jobs {
		j := &o.scratch.Jobs[i]
		at.jobs = append(at.jobs, jobOnNode{newest: j.Newest, class: o.number(j.Job.Class()), whole: j.Whole,
			tasks: int32(min(j.Tasks, math.MaxInt32)), freed: int32(min(j.Freed, math.MaxInt32)), each: int32(min(j.Each, math.MaxInt32)),
			count: int32(j.Count), devices: int32(j.Devices), widest: int32(j.Widest)})
	}
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
