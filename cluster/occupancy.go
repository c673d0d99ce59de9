package cluster

import (
	"math"
	"slices"
)

// Occupancy is a summary of one node for searches that compare many nodes: how many of its
// devices have room, and what its running preemptible tasks hold.
type Occupancy struct {
	// Unfilled is Node.Unfilled. It is the largest number possible if devices share their
	// memory, since one eviction may then make any number of them usable.
	Unfilled int
	Jobs     []JobOnNode
}

// JobOnNode is a summary of the running preemptible tasks of one job on one node. It bounds the
// cost of evicting some of them from below, except for jobs that have lost tasks (see
// ClassOnNode).
type JobOnNode struct {
	Job         *Job
	ClassOnNode       // with Whole and the figures of the job alone
	Count       int   // how many tasks these are
	Devices     int   // how many devices they hold together
	Widest      int   // how many devices one of them holds at most
	Each        int64 // the least that one of them holds, in thousandths of devices
}

// Occupancy sets the fields of o to those of the node in the slot. It reuses the memory of
// o.Jobs. If there is no node in the slot, there are no jobs.
func (k Classes) Occupancy(slot int, o *Occupancy) {
	o.Unfilled, o.Jobs = 0, o.Jobs[:0]
	n := k.state.fleet.slots.at[slot]
	if n == nil {
		return
	}
	if o.Unfilled = n.Unfilled(); n.sliced {
		o.Unfilled = math.MaxInt32
	}
	for _, t := range n.Tasks {
		if !t.mayBeVictim() {
			continue
		}
		i := slices.IndexFunc(o.Jobs, func(h JobOnNode) bool { return h.Job == t.Job })
		if i < 0 {
			i = len(o.Jobs)
			tasks, freed := t.evictedWith()
			o.Jobs = append(o.Jobs, JobOnNode{Job: t.Job, ClassOnNode: ClassOnNode{t.Started, true, tasks, freed}, Each: t.milli()})
		}
		o.Jobs[i].add(t)
	}
}

// add includes the task in the summary.
func (h *JobOnNode) add(t *Task) {
	tasks, freed := t.evictedWith()
	h.Newest, h.Whole, h.Tasks, h.Freed = max(h.Newest, t.Started), h.Whole && !t.elastic(), min(h.Tasks, tasks), min(h.Freed, freed)
	h.Count, h.Devices, h.Widest, h.Each = h.Count+1, h.Devices+len(t.Claims), max(h.Widest, len(t.Claims)), min(h.Each, t.milli())
}
