package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// earmarkBefore is the earmark on a node before a session.
type earmarkBefore struct {
	job   string
	room  cluster.EarmarkedRoom
	start int64
}

// checkEarmarks checks that no task was placed on room that was earmarked for another job before
// the session and is still: unless the task left the room, its job must come before the other job,
// have a stronger tier, or end in time. What tasks that move hold is never an exception.
func (c *sessionCheck) checkEarmarks() error {
	withdrawn := map[string]bool{} // by job; an earmark that it gets in the same session is another one
	for _, e := range c.out.Events {
		switch {
		case e.Kind != engine.Earmarked:
		case len(e.Rooms) > 0:
			c.counts.Earmarks++
		default:
			withdrawn[e.Job] = true
		}
	}
	for i := range c.out.Decisions {
		d := &c.out.Decisions[i]
		n := c.state.Node(d.Node)
		if d.Action == engine.EvictTask || n == nil {
			continue
		}
		was := c.before.earmarks[d.Node]
		t, of := c.state.Task(d.Task), cluster.EarmarksOf(c.state.View()).On(n)
		if of == nil || of.Job == d.Task.Job || was.job != of.Job || withdrawn[of.Job] || c.before.nodes[t] == n {
			continue
		}
		moved := t.Landing() != nil
		c.counts.PlacedBeside++
		if owner := c.state.Job(of.Job); !leavesRoom(n, t.Shape, &was.room, c.out.Decisions[i+1:], c.state) && (moved || !c.mayTake(t.Job, owner, was.start)) {
			return fmt.Errorf("%s (queue %s, priority %d, created %d, run time %d) was placed on node %s, which is earmarked for %s (queue %s, priority %d, created %d, start %d; now %d): %+v; free now %+v",
				t.ID, t.Job.Queue, t.Job.Priority, t.Job.Created, t.Job.RunFor, d.Node, of.Job, owner.Queue, owner.Priority, owner.Created, was.start, c.options.Now, was.room, n.Resources)
		}
	}
	return nil
}

// leavesRoom reports whether the node, on which a task of the shape was placed, still had the room
// before the later decisions, as far as the task uses what the room has. Whatever was evicted later
// counts as free.
func leavesRoom(n *cluster.Node, s *cluster.Shape, r *cluster.EarmarkedRoom, later []engine.Decision, state *cluster.State) bool {
	held, free := map[int]int32{}, map[string]int64{}
	for i := range later {
		if d := &later[i]; d.Action != engine.EvictTask && d.Node == n.Name {
			for _, c := range d.Claims {
				held[c.Device]++
			}
			for _, a := range state.Task(d.Task).Shape.Resources {
				free[a.Name] += a.Value
			}
		}
	}
	for _, a := range s.Resources {
		if kept := r.Resources.Of(a.Name); a.Value > 0 && kept > 0 && n.Ledger(a.Name).Free()+free[a.Name] < kept {
			return false
		}
	}
	idle := 0
	for i := range n.Devices {
		if d := &n.Devices[i]; d.Use.Leases-held[i] <= 0 && !d.Lost {
			idle++
		}
	}
	return s.Need.None() || idle >= r.Devices
}

// mayTake reports whether the job may take the room of the other job.
func (c *sessionCheck) mayTake(job, owner *cluster.Job, start int64) bool {
	if start > 0 && job.RunFor > 0 && c.options.Now+job.RunFor <= start {
		return true
	}
	if job.Queue == owner.Queue {
		return job.Priority > owner.Priority || job.Priority == owner.Priority && c.earlierEarmark(job, owner)
	}
	tier := func(j *cluster.Job) int { return c.state.Queue(j.Queue).Tier.Rank() }
	return tier(job) < tier(owner)
}

// earlierEarmark reports whether the job, which lacked its minimum before the session, had an earmark for
// longer than the owner then or, if both got theirs at the same time, one that comes before the owner's.
func (c *sessionCheck) earlierEarmark(job, owner *cluster.Job) bool {
	mine, its := c.before.earmarked[job.ID], c.before.earmarked[owner.ID]
	if mine == nil || its == nil || c.before.placed[job] || mine.Since != its.Since {
		return mine != nil && its != nil && !c.before.placed[job] && mine.Since < its.Since
	}
	devices := func(e *cluster.Earmarked) (sum int) {
		for _, r := range e.Rooms {
			sum += r.Devices
		}
		return sum
	}
	if x, y := devices(mine), devices(its); x != y {
		return x > y
	}
	return job.Created <= owner.Created
}
