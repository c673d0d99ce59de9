package engine

import (
	"cmp"
	"math"

	"github.com/berth-project/berth/cluster"
)

// cost is what a plan takes from other jobs. Lower is better. The fields are compared in the
// order in which they are declared.
type cost struct {
	tier     int8  // the strongest tier that loses a task: 3 for Guaranteed, 0 if no task is evicted
	priority int32 // the highest priority of the evicted tasks
	victims  int64 // the sum of what VictimCost hooks answer for them
	beyond   int64 // thousandths of devices that are freed and that the plan does not need
	tasks    int32 // how many tasks are evicted
	jobs     int32 // how many jobs are evicted as a whole, so that surplus is evicted first
	young    int64 // the negated start time of the task that started last, so that long-running tasks are kept

	moved struct {
		tasks, jobs int32
		priority    int64 // the sum over all tasks
		victims     int64
		young       int64
	}
}

// noCost returns the cost of a plan without victims.
func noCost() cost { return cost{priority: math.MinInt32} }

func (c *cost) compare(o *cost) int {
	if by := c.compareEvicted(o); by != 0 {
		return by
	}
	return c.compareMoved(o)
}

// compareEvicted compares the costs of evictions alone, without those of moves.
func (c *cost) compareEvicted(o *cost) int {
	switch {
	case c.tier != o.tier:
		return cmp.Compare(c.tier, o.tier)
	case c.priority != o.priority:
		return cmp.Compare(c.priority, o.priority)
	case c.victims != o.victims:
		return cmp.Compare(c.victims, o.victims)
	case c.beyond != o.beyond:
		return cmp.Compare(c.beyond, o.beyond)
	case c.tasks != o.tasks:
		return cmp.Compare(c.tasks, o.tasks)
	case c.jobs != o.jobs:
		return cmp.Compare(c.jobs, o.jobs)
	}
	return cmp.Compare(c.young, o.young)
}

func (c *cost) compareMoved(o *cost) int {
	return cmp.Or(
		cmp.Compare(c.moved.tasks, o.moved.tasks),
		cmp.Compare(c.moved.jobs, o.moved.jobs),
		cmp.Compare(c.moved.priority, o.moved.priority),
		cmp.Compare(c.moved.victims, o.moved.victims),
		cmp.Compare(c.moved.young, o.moved.young),
	)
}

// add adds a task that is evicted or moved for the purpose.
func (v *victims) add(c *cost, t *cluster.Task, p Purpose) {
	if p == Move {
		c.moved.tasks++
		c.moved.victims += v.costOfTask(t)
		c.moved.priority += int64(t.Job.Priority)
		c.moved.young = min(c.moved.young, -t.Started)
		return
	}
	c.tier = max(c.tier, strength(v.tierOf(t.Job.Queue)))
	c.priority = max(c.priority, t.Job.Priority)
	c.victims += v.costOfTask(t)
	c.tasks++
	c.young = min(c.young, -t.Started)
}

// addJob adds a job that is evicted or moved as a whole.
func (c *cost) addJob(p Purpose) {
	if p == Move {
		c.moved.jobs++
	} else {
		c.jobs++
	}
}

// costOf returns the cost of the plan without the field beyond, which is known only when the
// job is placed.
func (v *victims) costOf(plan []*Victim) cost {
	c := noCost()
	for _, x := range plan {
		if x.Whole {
			c.addJob(x.Purpose)
		}
		for _, t := range x.Tasks {
			v.add(&c, t, x.Purpose)
		}
	}
	return c
}

// strength returns 3 for the strongest tier and 1 for the weakest. A cost without evictions
// has 0 instead.
func strength(t cluster.Tier) int8 { return int8(3 - min(t.Rank(), 2)) }

func tierOf(s cluster.View, queue string) cluster.Tier {
	if q := s.Queue(queue); q != nil {
		return q.Tier
	}
	return cluster.TierStandard
}

// tierOf is the function tierOf. Victims that are considered one after the other are most often of
// the same queue.
func (v *victims) tierOf(queue string) cluster.Tier {
	if v.last.queue != queue || queue == "" {
		v.last.queue, v.last.tier = queue, tierOf(v.view, queue)
	}
	return v.last.tier
}

// freed returns how much of devices the tasks hold, in thousandths of a device.
func freed(tasks []*cluster.Task) int64 {
	sum := int64(0)
	for _, t := range tasks {
		for _, c := range t.Claims {
			sum += int64(c.Milli)
		}
	}
	return sum
}

// beyond returns how much of devices the evictions since the checkpoint freed without need,
// in thousandths. On each node, what was placed there since the checkpoint is assumed to
// use first the room that was free before or that moved tasks left, and then the room of
// evicted tasks. The rest of the latter was freed without need.
func (st *Statement) beyond(checkpoint int) int64 {
	type touched struct {
		node           *cluster.Node
		evicted, taken int64
	}
	var few [4]touched
	nodes := few[:0]
	var index map[*cluster.Node]int // in nodes; nil as long as these are few
	at := func(n *cluster.Node) *touched {
		if i, known := index[n]; known {
			return &nodes[i]
		}
		for i := len(nodes) - 1; i >= 0 && index == nil; i-- {
			if nodes[i].node == n {
				return &nodes[i]
			}
		}
		nodes = append(nodes, touched{node: n})
		if index == nil && len(nodes) > 16 {
			index = map[*cluster.Node]int{}
			for i := range nodes {
				index[nodes[i].node] = i
			}
		} else if index != nil {
			index[n] = len(nodes) - 1
		}
		return &nodes[len(nodes)-1]
	}
	for i := checkpoint; i < len(st.log); i++ {
		switch op := &st.log[i]; {
		case op.kind == placed:
			at(op.task.Node).taken += freed([]*cluster.Task{op.task})
		case op.kind == evicted && op.purpose != Move:
			at(op.task.Node).evicted += freed([]*cluster.Task{op.task})
		}
	}
	sum := int64(0)
	for i := range nodes {
		t := &nodes[i]
		if t.evicted == 0 {
			continue
		}
		// Room that was free before, or that moved tasks left, is now either idle or taken.
		before := idleOn(t.node) + t.taken - t.evicted
		sum += max(0, t.evicted-max(0, t.taken-before))
	}
	return sum
}
