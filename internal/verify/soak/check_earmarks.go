package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// checkEarmarks checks that no task was placed on room that was earmarked for another job before
// the session and is still: unless the room is left, its job must come before the other job, have
// a stronger tier, or end in time.
func (c *sessionCheck) checkEarmarks() error {
	for _, e := range c.out.Events {
		if e.Kind == engine.Earmarked && len(e.Rooms) > 0 {
			c.counts.Earmarks++
		}
	}
	for i := range c.out.Decisions {
		d := &c.out.Decisions[i]
		t, of := c.state.Task(d.Task), cluster.EarmarksOf(c.state.View()).On(c.state.Node(d.Node))
		if d.Action == engine.EvictTask || of == nil || of.Job == d.Task.Job || c.before.earmarks[d.Node] != of.Job || c.before.nodes[t] != nil {
			continue
		}
		if owner := c.state.Job(of.Job); !leavesRoom(t.Node, t.Shape, &of.EarmarkedRoom) && !c.mayTake(t.Job, owner) {
			return fmt.Errorf("%s was placed on node %s, which is earmarked for %s: %+v", t.ID, d.Node, of.Job, of.EarmarkedRoom)
		}
	}
	return nil
}

// leavesRoom reports whether the node, on which a task of the shape was placed, still has the room, as
// far as the task uses what the room has.
func leavesRoom(n *cluster.Node, s *cluster.Shape, r *cluster.EarmarkedRoom) bool {
	for _, a := range s.Resources {
		if kept := r.Resources.Of(a.Name); a.Value > 0 && kept > 0 && n.Ledger(a.Name).Free() < kept {
			return false
		}
	}
	idle := 0
	for i := range n.Devices {
		if d := &n.Devices[i]; d.Use.Leases == 0 && !d.Lost {
			idle++
		}
	}
	return s.Need.None() || idle >= r.Devices
}

// mayTake reports whether the job may take the room of the other job.
func (c *sessionCheck) mayTake(job, owner *cluster.Job) bool {
	if job.Queue == owner.Queue {
		return job.Priority > owner.Priority || job.Priority == owner.Priority && job.Created <= owner.Created
	}
	tier := func(j *cluster.Job) int { return c.state.Queue(j.Queue).Tier.Rank() }
	start := owner.Earmarked.Start
	return tier(job) < tier(owner) || start > 0 && job.RunFor > 0 && c.options.Now+job.RunFor <= start
}
