package oracle

import (
	"cmp"
	"fmt"
)

// cost is the cost of a plan. Plans are compared by its fields, in order. The first field
// that differs decides, and the plan with the smaller value is better.
type cost struct {
	form     int   // number of the form of the job
	tier     int   // the strongest tier that loses a task: 3 for Guaranteed, 0 for none
	priority int32 // the highest priority of the evicted tasks
	victims  int64 // the sum of the costs that the plugin gives to the evicted tasks
	beyond   int64 // thousandths of devices that are freed and not needed
	tasks    int   // number of evicted tasks
	jobs     int   // number of jobs that are evicted as a whole
	young    int64 // the latest start of an evicted task, negated
	moved    int   // number of tasks that move
}

// compare returns a negative number if the cost is lower than o, and a positive one if it is
// higher.
func (c cost) compare(o cost) int {
	return cmp.Or(c.compareFirst(o), cmp.Compare(c.beyond, o.beyond), c.compareRest(o))
}

// compareFirst compares the fields before beyond.
func (c cost) compareFirst(o cost) int {
	return cmp.Or(cmp.Compare(c.form, o.form), cmp.Compare(c.tier, o.tier), cmp.Compare(c.priority, o.priority), cmp.Compare(c.victims, o.victims))
}

// compareRest compares the fields after beyond.
func (c cost) compareRest(o cost) int {
	return cmp.Or(cmp.Compare(c.tasks, o.tasks), cmp.Compare(c.jobs, o.jobs), cmp.Compare(c.young, o.young), cmp.Compare(c.moved, o.moved))
}

// below returns the largest value of beyond with which this cost would be lower than o. It
// returns a negative number if there is none. The field beyond of c is not read.
func (c cost) below(o cost) int64 {
	switch first, rest := c.compareFirst(o), c.compareRest(o); {
	case first < 0:
		return unbounded
	case first > 0:
		return -1
	case rest < 0:
		return o.beyond
	}
	return o.beyond - 1
}

// unbounded is more than any cluster has.
const unbounded = int64(1) << 60

// addEvicted adds an evicted task.
func (c *cost) addEvicted(t *task) {
	strength := 3 - t.form.leaf().tier.Rank()
	if c.tasks == 0 {
		c.priority = t.form.job.Priority
	}
	c.victims += t.form.cost
	c.tier, c.priority, c.tasks, c.young = max(c.tier, strength), max(c.priority, t.form.job.Priority), c.tasks+1, min(c.young, -t.task.Started)
}

// excess describes the first field in which the cost is higher than the other.
func (c cost) excess(o cost) string {
	switch {
	case c.form != o.form:
		return "a later form than needed"
	case c.tier != o.tier:
		return "a stronger tier than needed"
	case c.priority != o.priority:
		return "a higher priority than needed"
	case c.victims != o.victims:
		return "victims that cost more than needed"
	case c.beyond != o.beyond:
		return "more is freed than needed"
	case c.tasks != o.tasks:
		return fmt.Sprintf("%d tasks more than needed are evicted", c.tasks-o.tasks)
	case c.jobs != o.jobs:
		return "whole jobs are evicted instead of surplus"
	case c.young != o.young:
		return "an older task than needed"
	}
	return fmt.Sprintf("%d tasks more than needed move", c.moved-o.moved)
}

// planCosts computes the costs of plans for tasks that are placed as the placement records.
// The victims of a plan must still be placed.
type planCosts struct {
	objects   *objects
	placement *placement
}

// of returns the cost of a plan for the form, except for the field beyond.
func (p *planCosts) of(f *form, evicted, moved taskSet) cost {
	c := cost{form: f.number, moved: len(p.objects.members(moved))}
	for _, t := range p.objects.members(evicted) {
		c.addEvicted(t)
	}
	for _, o := range p.objects.jobs {
		if own := p.placement.bound(o); own != 0 && own&^evicted == 0 {
			c.jobs++
		}
	}
	return c
}

// changes returns how a plan changes the nodes before it places anything.
func (p *planCosts) changes(evicted, moved taskSet) nodeChanges {
	out := make(nodeChanges, len(p.objects.nodes))
	for n := range out {
		out[n].before = int64(p.placement.room.freeOfDevices(n))
	}
	for _, t := range p.objects.members(evicted) {
		out[p.placement.at[t.index].node].evicted += p.placement.held(t)[gpu]
	}
	for _, t := range p.objects.members(moved) {
		at := p.placement.at[t.index].node
		out[at].before += p.placement.held(t)[gpu]
		out[at].origin = true
	}
	return out
}

// nodeChange is how a plan changes the devices of one node, in thousandths of a device.
type nodeChange struct {
	evicted int64 // held by tasks that are evicted
	before  int64 // free before the plan, or held by tasks that move
	placed  int64 // held by tasks that the plan places
	origin  bool  // whether a task moves away from the node
}

// nodeChanges has the change of each node.
type nodeChanges []nodeChange

// place records that the plan places the task on the node or, if sign is -1, that it does
// not.
func (c nodeChanges) place(t *task, n int, sign int64) { c[n].placed += sign * t.amounts[gpu] }

// beyond returns what the plan frees beyond what is needed.
func (c nodeChanges) beyond() (freed int64) {
	for _, n := range c {
		if n.evicted > 0 {
			freed += max(0, n.evicted-max(0, n.placed-n.before))
		}
	}
	return freed
}

// areTwins reports whether the plan changes both nodes equally, so that it makes no
// difference which of the two is used. A task must not move to its former location, so that
// the origin of a task has no twin.
func (c nodeChanges) areTwins(a, b int) bool { return c[a] == c[b] && !c[b].origin }
