package engine

import (
	"cmp"
	"math"

	"github.com/berth-project/berth/cluster"
)

// cost is what a plan takes from other jobs: less is better, from the first field on.
// Victims that move are compared last.
type cost struct {
	tier     int8  // the strongest tier that loses a task: 3 for Guaranteed, 0 for none
	priority int32 // the highest of those that are evicted
	victims  int64 // what plugins say that these cost together
	beyond   int64 // thousandths of devices that are freed and that the plan does not need
	tasks    int32 // that are evicted
	jobs     int32 // that are evicted as a whole: surplus is evicted first
	young    int64 // when the youngest of them started, negated: the longest run is worth most

	moved struct {
		tasks, jobs     int32
		priority, young int64 // the priorities are summed up
		victims         int64
	}
}

// noCost is the cost of a plan that has no victim.
func noCost() cost { return cost{priority: math.MinInt32} }

func (c *cost) compare(o *cost) int {
	return cmp.Or(c.compareEvicted(o), c.compareMoved(o))
}

// compareEvicted leaves out what moves.
func (c *cost) compareEvicted(o *cost) int {
	return cmp.Or(
		cmp.Compare(c.tier, o.tier),
		cmp.Compare(c.priority, o.priority),
		cmp.Compare(c.victims, o.victims),
		cmp.Compare(c.beyond, o.beyond),
		cmp.Compare(c.tasks, o.tasks),
		cmp.Compare(c.jobs, o.jobs),
		cmp.Compare(c.young, o.young),
	)
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

// add counts a task that leaves.
func (v *victims) add(c *cost, t *cluster.Task, p Purpose) {
	if p == Move {
		c.moved.tasks++
		c.moved.victims += v.costOfTask(t)
		c.moved.priority += int64(t.Job.Priority)
		c.moved.young = min(c.moved.young, -t.Started)
		return
	}
	c.tier = max(c.tier, strength(tierOf(v.view, t.Job.Queue)))
	c.priority = max(c.priority, t.Job.Priority)
	c.victims += v.costOfTask(t)
	c.tasks++
	c.young = min(c.young, -t.Started)
}

// addJob counts a job of which no task keeps its place.
func (c *cost) addJob(p Purpose) {
	if p == Move {
		c.moved.jobs++
	} else {
		c.jobs++
	}
}

// costOf is what the victims cost, but for what they free beyond what is needed:
// that is known once the job is placed.
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

// strength orders tiers: a stronger one is greater, and none is 0.
func strength(t cluster.Tier) int8 { return int8(3 - min(t.Rank(), 2)) }

func tierOf(s cluster.View, queue string) cluster.Tier {
	if q := s.Queue(queue); q != nil {
		return q.Tier
	}
	return cluster.TierStandard
}

// freed is how much of all devices the tasks hold, in thousandths.
func freed(tasks []*cluster.Task) int64 {
	sum := int64(0)
	for _, t := range tasks {
		for _, c := range t.Claims {
			sum += int64(c.Milli)
		}
	}
	return sum
}

// beyond is how much the evictions since the checkpoint freed, on the nodes that they
// are on, beyond what was placed there since and did not fit what was free before. What
// victims that move left counts as free.
func (st *Statement) beyond(checkpoint int) int64 {
	type touched struct {
		node           *cluster.Node
		evicted, taken int64
	}
	var nodes []touched
	at := func(n *cluster.Node) *touched {
		for i := range nodes {
			if nodes[i].node == n {
				return &nodes[i]
			}
		}
		nodes = append(nodes, touched{node: n})
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
		// What was free before, or was left by victims that move, is idle now or was taken.
		before := idleOn(t.node) + t.taken - t.evicted
		sum += max(0, t.evicted-max(0, t.taken-before))
	}
	return sum
}
