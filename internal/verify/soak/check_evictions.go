package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// The reasons of the standard profile's evictions.
const (
	stale        engine.Reason = "GangBelowMinimum"
	reclaimed    engine.Reason = "Reclaimed"
	consolidated engine.Reason = "Consolidated"
)

// evictionCheck checks the evictions of one session.
type evictionCheck struct {
	state   *cluster.State
	now     int64
	before  *stateBefore
	history *history
	counts  *Counts
}

// run checks that each victim may be evicted, that the job it is evicted
// for is placed, and that a job is not displaced by the same job a second time.
func (c *evictionCheck) run(out *engine.Outcome) error {
	withdrawn, reduced := map[string]bool{}, map[string]bool{} // reduced: jobs that lost tasks or reservations
	nominated := map[cluster.TaskRef]bool{}
	for _, e := range out.Events {
		if e.Kind == engine.Withdrawn {
			withdrawn[e.Job], reduced[e.Job] = true, true
		}
	}
	for i := range out.Decisions {
		switch d := &out.Decisions[i]; d.Action {
		case engine.Nominate:
			nominated[d.Task] = true
		case engine.EvictTask:
			reduced[d.Task.Job] = true
		}
	}
	displaced := map[displacement]bool{}
	staleTasks := map[*cluster.Job]int{} // evicted tasks of stale gangs, to which budgets do not apply
	var victims []*engine.Decision
	for i := range out.Decisions {
		d := &out.Decisions[i]
		if d.Action != engine.EvictTask {
			continue
		}
		c.counts.Evictions++
		t := c.state.Task(d.Task)
		if d.Reason == engine.ScaledDown {
			c.counts.ScaledDown++
			if !t.Job.Retired || d.For != "" {
				return fmt.Errorf("%s was scaled down for %q, and its job is retired: %v", t.ID, d.For, t.Job.Retired)
			}
			continue
		}
		if d.Reason == stale {
			c.counts.StaleTasks++
			if staleTasks[t.Job]++; d.For != "" {
				return fmt.Errorf("%s is of a stale gang, and is evicted for %s", t.ID, d.For)
			}
			continue
		}
		victims = append(victims, d)
		if err := c.checkVictim(d, reduced); err != nil {
			return err
		}
		displaced[displacement{d.For, t.Job.ID}] = true
		if d.Reason != consolidated {
			continue
		}
		c.counts.Moves++
		if !nominated[d.Task] || t.Landing() == nil && !withdrawn[t.Job.ID] {
			return fmt.Errorf("%s moves, and no room is reserved for it", t.ID)
		}
	}
	for pair := range displaced {
		if c.history.displaced[pair] {
			return fmt.Errorf("%s was displaced for %s before", pair.victim, pair.job)
		}
		c.history.displaced[pair] = true
	}
	return c.checkBudgets(victims, staleTasks)
}

func (c *evictionCheck) checkVictim(d *engine.Decision, reduced map[string]bool) error {
	t, job := c.state.Task(d.Task), c.state.Job(d.For)
	switch {
	case job == nil:
		return fmt.Errorf("%s is evicted for %q, which does not exist", t.ID, d.For)
	case !job.HasMinimum():
		return fmt.Errorf("%s is evicted for %s, which is not placed: %s", t.ID, job.ID, describeTasks(job))
	case c.before.placed[job] && !reduced[job.ID] && len(c.state.View().Quotas(c.state.Queue(job.Queue))) == 0:
		return fmt.Errorf("%s is evicted for surplus of %s, and the queue of that job has no quota", t.ID, job.ID)
	case job.DelayEnds() > c.now:
		return fmt.Errorf("%s is evicted for %s, which must not evict before %d", t.ID, job.ID, job.DelayEnds())
	case !t.Job.Preemptible:
		return fmt.Errorf("%s is evicted for %s, and is not preemptible", t.ID, job.ID)
	case t.Job == job:
		return fmt.Errorf("%s is evicted for its own job", t.ID)
	}
	minRun := c.minRunTime(t.Job, d.Reason)
	if at := c.startTime(t); at == 0 || c.now-at >= minRun {
		return nil
	}
	first := c.now // if the whole job is evicted, the start of its first task counts
	for _, o := range t.Job.Tasks() {
		if _, ran := c.before.startTime[o]; ran && o.Runs() { // a task that was bound since then was not a victim
			return fmt.Errorf("%s started at %d, now is %d, and its queue protects it for %d; %s", t.ID, c.startTime(t), c.now, minRun, describeTasks(t.Job))
		}
		if at, ran := c.before.startTime[o]; ran {
			first = min(first, at)
		}
		if o.Status == cluster.Releasing {
			first = min(first, o.Started)
		}
	}
	if first != 0 && c.now-first < minRun {
		return fmt.Errorf("%s started at %d, now is %d, and its queue protects it for %d", t.Job.ID, first, c.now, minRun)
	}
	return nil
}

// startTime returns when the task started. A task that was bound in this session
// started now.
func (c *evictionCheck) startTime(t *cluster.Task) int64 {
	if at, ran := c.before.startTime[t]; ran {
		return at
	}
	return c.now
}

// minRunTime returns how long the job's tasks are protected after their start. The
// nearest queue with such a setting counts, from the job's queue upwards.
func (c *evictionCheck) minRunTime(j *cluster.Job, why engine.Reason) int64 {
	for q := c.state.Queue(j.Queue); q != nil; q = c.state.View().Parent(q) {
		least := q.MinRunBeforePreempt
		if why == reclaimed {
			least = q.MinRunBeforeReclaim
		}
		if least > 0 {
			return least
		}
	}
	return 0
}

// checkBudgets checks that enough tasks are left running for each budget that covers
// a victim. The alternative that was chosen for a job may have changed, and the new
// one may have more tasks; the smaller number counts.
func (c *evictionCheck) checkBudgets(victims []*engine.Decision, staleTasks map[*cluster.Job]int) error {
	for _, b := range c.state.View().Budgets() {
		covered := ""
		for _, d := range victims {
			if b.Covers(c.state.Job(d.Task.Job)) {
				covered = d.Task.ID()
			}
		}
		if covered == "" {
			continue
		}
		running, desired := 0, 0
		for _, j := range c.state.Jobs() {
			if !b.Covers(j) {
				continue
			}
			running += staleTasks[j]
			desired += min(c.before.tasks[j], len(j.Tasks())-j.Ended())
			for _, t := range j.Tasks() {
				if t.Runs() {
					running++
				}
			}
		}
		if running < b.Required(desired) {
			return fmt.Errorf("%s was evicted: %d run of %d, and budget %s requires %d", covered, running, desired, b.Name, b.Required(desired))
		}
	}
	return nil
}
