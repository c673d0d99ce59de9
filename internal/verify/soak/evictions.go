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

// checkEvictions checks that each victim may be evicted, that the job it is evicted
// for is placed, and that a job is not displaced by the same job a second time.
func (w *World) checkEvictions(before *prior, out *engine.Outcome) error {
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
	pairs := map[[2]string]bool{}
	staleTasks := map[*cluster.Job]int{} // evicted tasks of stale gangs, to which budgets do not apply
	var victims []*engine.Decision
	for i := range out.Decisions {
		d := &out.Decisions[i]
		if d.Action != engine.EvictTask {
			continue
		}
		w.Evictions++
		t := w.State.Task(d.Task)
		if d.Reason == engine.ScaledDown {
			w.ScaledDown++
			if !t.Job.Retired || d.For != "" {
				return fmt.Errorf("%s was scaled down for %q, and its job is retired: %v", t.ID, d.For, t.Job.Retired)
			}
			continue
		}
		if d.Reason == stale {
			w.Stale++
			if staleTasks[t.Job]++; d.For != "" {
				return fmt.Errorf("%s is of a stale gang, and is evicted for %s", t.ID, d.For)
			}
			continue
		}
		victims = append(victims, d)
		if err := w.checkVictim(before, d, reduced); err != nil {
			return err
		}
		pairs[[2]string{d.For, t.Job.ID}] = true
		if d.Reason != consolidated {
			continue
		}
		w.Moves++
		if !nominated[d.Task] || t.Landing() == nil && !withdrawn[t.Job.ID] {
			return fmt.Errorf("%s moves, and no room is reserved for it", t.ID)
		}
	}
	for pair := range pairs {
		if w.displaced[pair] {
			return fmt.Errorf("%s was displaced for %s before", pair[1], pair[0])
		}
		w.displaced[pair] = true
	}
	return w.checkBudgets(before, victims, staleTasks)
}

func (w *World) checkVictim(before *prior, d *engine.Decision, reduced map[string]bool) error {
	t, job := w.State.Task(d.Task), w.State.Job(d.For)
	switch {
	case job == nil:
		return fmt.Errorf("%s is evicted for %q, which does not exist", t.ID, d.For)
	case !job.HasMinimum():
		return fmt.Errorf("%s is evicted for %s, which is not placed: %s", t.ID, job.ID, describe(job))
	case before.stood[job] && !reduced[job.ID] && len(w.State.View().Quotas(w.State.Queue(job.Queue))) == 0:
		return fmt.Errorf("%s is evicted for surplus of %s, and the queue of that job has no quota", t.ID, job.ID)
	case job.DelayEnds() > w.clock:
		return fmt.Errorf("%s is evicted for %s, which must not evict before %d", t.ID, job.ID, job.DelayEnds())
	case !t.Job.Preemptible:
		return fmt.Errorf("%s is evicted for %s, and is not preemptible", t.ID, job.ID)
	case t.Job == job:
		return fmt.Errorf("%s is evicted for its own job", t.ID)
	}
	minRun := w.minRunTime(t.Job, d.Reason)
	if started := w.started(before, t); started == 0 || w.clock-started >= minRun {
		return nil
	}
	first := w.clock // if the whole job is evicted, the start of its first task counts
	for _, o := range t.Job.Tasks() {
		if _, ran := before.bound[o]; ran && o.Runs() { // a task that was bound since then was not a victim
			return fmt.Errorf("%s started at %d, now is %d, and its queue protects it for %d; %s", t.ID, w.started(before, t), w.clock, minRun, describe(t.Job))
		}
		if at, ran := before.bound[o]; ran {
			first = min(first, at)
		}
		if o.Status == cluster.Releasing {
			first = min(first, o.Started)
		}
	}
	if first != 0 && w.clock-first < minRun {
		return fmt.Errorf("%s started at %d, now is %d, and its queue protects it for %d", t.Job.ID, first, w.clock, minRun)
	}
	return nil
}

// started returns when the task started. A task that was bound in this session
// started now.
func (w *World) started(before *prior, t *cluster.Task) int64 {
	if at, ran := before.bound[t]; ran {
		return at
	}
	return w.clock
}

// minRunTime returns how long the job's tasks are protected after their start. The
// nearest queue with such a setting counts, from the job's queue upwards.
func (w *World) minRunTime(j *cluster.Job, why engine.Reason) int64 {
	for q := w.State.Queue(j.Queue); q != nil; q = w.State.View().Parent(q) {
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
func (w *World) checkBudgets(before *prior, victims []*engine.Decision, staleTasks map[*cluster.Job]int) error {
	for _, b := range w.State.View().Budgets() {
		covered := ""
		for _, d := range victims {
			if b.Covers(w.State.Job(d.Task.Job)) {
				covered = d.Task.ID()
			}
		}
		if covered == "" {
			continue
		}
		running, desired := 0, 0
		for _, j := range w.State.Jobs() {
			if !b.Covers(j) {
				continue
			}
			running += staleTasks[j]
			desired += min(before.tasks[j], len(j.Tasks())-j.Ended())
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

// checkRankings checks that as many replicas are kept as are desired, and that the
// kept ones are sorted by score. The scores of retired replicas are not compared:
// each of them had the lowest score when it was retired, and scores change with every
// retirement.
func (w *World) checkRankings(out *engine.Outcome) error {
	for _, r := range out.Rankings {
		w.Retired += len(r.Jobs) - r.Desired
		for i, x := range r.Jobs {
			if x.Retired != (i >= r.Desired) || x.Retired != w.State.Job(x.Job).Retired || i > 0 && i <= r.Desired && x.Score.Total > r.Jobs[i-1].Score.Total {
				return fmt.Errorf("%s: of %d replicas %d are desired, and %s is number %d with a score of %d, retired: %v", r.Set, len(r.Jobs), r.Desired, x.Job, i+1, x.Score.Total, x.Retired)
			}
		}
	}
	return nil
}
