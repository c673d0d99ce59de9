package oracle

import (
	"cmp"
	"fmt"
)

// cost is the cost of a plan. Plans are compared by its fields, in order; the smaller
// value of the first field that differs is better.
type cost struct {
	form     int   // index of the job's form
	tier     int   // the strongest tier that loses a task: 3 for Guaranteed, 0 for none
	priority int32 // the highest priority of the evicted tasks
	victims  int64 // the sum of the costs that the plugin gives to the evicted tasks
	beyond   int64 // thousandths of devices that are freed and not needed
	tasks    int   // number of evicted tasks
	jobs     int   // number of jobs that are evicted as a whole
	young    int64 // the latest start of an evicted task, negated
	moved    int   // number of tasks that move
}

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

// below returns the largest value of beyond with which this cost is less than the other.
// It is negative if there is none.
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
	strength := 3 - t.job.leaf().tier.Rank()
	if c.tasks == 0 {
		c.priority = t.job.Priority
	}
	c.victims += t.job.cost
	c.tier, c.priority, c.tasks, c.young = max(c.tier, strength), max(c.priority, t.job.Priority), c.tasks+1, min(c.young, -t.Started)
}

// costOf returns the cost of a plan, except for the field beyond.
func (b *board) costOf(form *job, evicted, moved uint64) cost {
	c := cost{form: form.form, moved: len(b.members(moved))}
	for _, t := range b.members(evicted) {
		c.addEvicted(t)
	}
	for _, j := range b.jobs {
		if own := b.bound(j); own != 0 && own&^evicted == 0 {
			c.jobs++
		}
	}
	return c
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

// flow is how a plan changes the devices of one node, in thousandths of a device.
type flow struct {
	evicted int64 // held by tasks that are evicted
	before  int64 // free before the plan, or held by tasks that move
	placed  int64 // held by tasks that the plan places
	origin  bool  // a task moves away from the node
}

// flows returns the flows of a plan before anything is placed. Its victims must still be
// on the board.
func (b *board) flows(evicted, moved uint64) []flow {
	out := make([]flow, len(b.nodes))
	for n := range out {
		out[n].before = int64(b.left(n))
	}
	for _, t := range b.members(evicted) {
		out[b.at[t.index].node].evicted += b.holds(t)[gpu]
	}
	for _, t := range b.members(moved) {
		at := b.at[t.index].node
		out[at].before += b.holds(t)[gpu]
		out[at].origin = true
	}
	return out
}

// beyond returns what is freed beyond what is needed.
func beyond(flows []flow) (sum int64) {
	for _, f := range flows {
		if f.evicted > 0 {
			sum += max(0, f.evicted-max(0, f.placed-f.before))
		}
	}
	return sum
}
