package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Reasons of evictions by plugins of the standard profile.
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
	out     *engine.Outcome
	history *history
	counts  *Counts
}

// run checks that each victim may be evicted, that the job it is evicted for is
// placed, and that a job is not displaced by the same job a second time.
func (c *evictionCheck) run() error {
	displaced := map[displacement]bool{}
	staleTasks := map[*cluster.Job]int{} // evicted tasks of stale gangs, to which budgets do not apply
	var victims []*engine.Decision
	for i := range c.out.Decisions {
		d := &c.out.Decisions[i]
		if d.Action != engine.EvictTask {
			continue
		}
		c.counts.Evictions++
		t := c.state.Task(d.Task)
		switch d.Reason {
		case engine.ScaledDown:
			c.counts.ScaledDown++
			if !t.Job.Retired || d.For != "" {
				return fmt.Errorf("%s was scaled down for %q, and its job is retired: %v", t.ID, d.For, t.Job.Retired)
			}
			continue
		case stale:
			c.counts.StaleTasks++
			if staleTasks[t.Job]++; d.For != "" {
				return fmt.Errorf("%s is of a stale gang, and is evicted for %s", t.ID, d.For)
			}
			continue
		case consolidated:
			c.counts.Moves++
			if !c.isReserved(t) {
				return fmt.Errorf("%s moves, and no room is reserved for it", t.ID)
			}
		}
		if err := c.checkVictim(t, d); err != nil {
			return err
		}
		victims = append(victims, d)
		displaced[displacement{d.For, t.Job.ID}] = true
	}
	for pair := range displaced {
		if c.history.displaced[pair] {
			return fmt.Errorf("%s was displaced for %s before", pair.victim, pair.job)
		}
		c.history.displaced[pair] = true
	}
	return c.checkBudgets(victims, staleTasks)
}

// isReserved reports whether the session reserved room for a task that moves. It may
// have withdrawn the reservation later.
func (c *evictionCheck) isReserved(t *cluster.Task) bool {
	nominated := slices.ContainsFunc(c.out.Decisions, func(d engine.Decision) bool { return d.Action == engine.Nominate && d.Task == t.Ref() })
	return nominated && (t.Landing() != nil || c.hasWithdrawn(t.Job))
}

// hasWithdrawn reports whether the session withdrew a reservation of the job.
func (c *evictionCheck) hasWithdrawn(j *cluster.Job) bool {
	return slices.ContainsFunc(c.out.Events, func(e engine.Record) bool { return e.Kind == engine.Withdrawn && e.Job == j.ID })
}

// isReduced reports whether the job lost tasks or reservations in the session.
func (c *evictionCheck) isReduced(j *cluster.Job) bool {
	return c.hasWithdrawn(j) || slices.ContainsFunc(c.out.Decisions, func(d engine.Decision) bool { return d.Action == engine.EvictTask && d.Task.Job == j.ID })
}

// checkVictim checks that the task may be evicted for the job of the decision.
func (c *evictionCheck) checkVictim(t *cluster.Task, d *engine.Decision) error {
	job := c.state.Job(d.For)
	switch {
	case job == nil:
		return fmt.Errorf("%s is evicted for %q, which does not exist", t.ID, d.For)
	case !job.HasMinimum():
		return fmt.Errorf("%s is evicted for %s, which is not placed: %s", t.ID, job.ID, describeTasks(job))
	case c.before.placed[job] && !c.isReduced(job) && len(c.state.View().Quotas(c.state.Queue(job.Queue))) == 0:
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
	// The task is protected, unless its whole job is evicted: then the start of the
	// job's first task counts.
	first := c.now
	for _, o := range t.Job.Tasks() {
		if _, ran := c.before.startTime[o]; ran && o.Runs() { // a task that was bound in this session does not count: it was not a victim
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

// minRunTime returns how long the job's tasks are protected after their start. If
// several queues from the job's queue to the root set it, the lowest queue counts.
func (c *evictionCheck) minRunTime(j *cluster.Job, reason engine.Reason) int64 {
	for q := c.state.Queue(j.Queue); q != nil; q = c.state.View().Parent(q) {
		least := q.MinRunBeforePreempt
		if reason == reclaimed {
			least = q.MinRunBeforeReclaim
		}
		if least > 0 {
			return least
		}
	}
	return 0
}

// checkBudgets checks that enough tasks are left running for each budget that covers
// a victim. If the alternative of a job changed in the session, the alternative with
// fewer tasks counts.
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
