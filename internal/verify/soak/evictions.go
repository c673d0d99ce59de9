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

// checkEvictions makes sure that whoever has to go may go, goes for somebody who
// is placed, and not for the second time.
func (w *World) checkEvictions(before *moment, out *engine.Outcome) error {
	withdrawn, fallen := map[string]bool{}, map[string]bool{}
	promised := map[cluster.TaskRef]bool{}
	for _, e := range out.Events {
		if e.Kind == engine.Withdrawn {
			withdrawn[e.Job], fallen[e.Job] = true, true
		}
	}
	for i := range out.Decisions {
		switch d := &out.Decisions[i]; d.Action {
		case engine.Nominate:
			promised[d.Task] = true
		case engine.EvictIt:
			fallen[d.Task.Job] = true
		}
	}
	pairs := map[[2]string]bool{}
	swept := map[*cluster.Job]int{} // tasks of stale gangs: they have no say
	var gone []*engine.Decision
	for i := range out.Decisions {
		d := &out.Decisions[i]
		if d.Action != engine.EvictIt {
			continue
		}
		w.Evictions++
		t := w.State.Task(d.Task)
		if d.Reason == engine.ScaledDown {
			w.ScaledDown++
			if !t.Job.Retired || d.For != "" {
				return fmt.Errorf("%s was scaled down for %q, and is retired: %v", t.ID, d.For, t.Job.Retired)
			}
			continue
		}
		if d.Reason == stale {
			w.Stale++
			if swept[t.Job]++; d.For != "" {
				return fmt.Errorf("%s is of a stale gang, and goes for %s", t.ID, d.For)
			}
			continue
		}
		gone = append(gone, d)
		if err := w.checkVictim(before, d, fallen); err != nil {
			return err
		}
		pairs[[2]string{d.For, t.Job.ID}] = true
		if d.Reason != consolidated {
			continue
		}
		w.Moves++
		if !promised[d.Task] || t.Landing() == nil && !withdrawn[t.Job.ID] {
			return fmt.Errorf("%s moves and has nowhere to go", t.ID)
		}
	}
	for pair := range pairs {
		if w.displaced[pair] {
			return fmt.Errorf("%s was displaced for %s before", pair[1], pair[0])
		}
		w.displaced[pair] = true
	}
	return w.checkBudgets(before, gone, swept)
}

func (w *World) checkVictim(before *moment, d *engine.Decision, fallen map[string]bool) error {
	t, job := w.State.Task(d.Task), w.State.Job(d.For)
	switch {
	case job == nil:
		return fmt.Errorf("%s goes for %q, which is not there", t.ID, d.For)
	case !job.HasMinimum():
		return fmt.Errorf("%s goes for %s, which is not placed: %s", t.ID, job.ID, describe(job))
	case before.stood[job] && !fallen[job.ID] && len(w.State.View().Quotas(w.State.Queue(job.Queue))) == 0:
		return fmt.Errorf("%s goes for surplus of %s, whose queue has no quota", t.ID, job.ID)
	case job.DelayEnds() > w.clock:
		return fmt.Errorf("%s goes for %s, which evicts nothing before %d", t.ID, job.ID, job.DelayEnds())
	case !t.Job.Preemptible:
		return fmt.Errorf("%s goes for %s, and is not preemptible", t.ID, job.ID)
	case t.Job == job:
		return fmt.Errorf("%s goes for its own job", t.ID)
	}
	least := w.protection(t.Job, d.Reason)
	if started := w.started(before, t); started == 0 || w.clock-started >= least {
		return nil
	}
	first := w.clock // of a whole job the first task counts
	for _, o := range t.Job.Tasks() {
		if _, ran := before.bound[o]; ran && o.Runs() { // what was bound since is no part of who went
			return fmt.Errorf("%s started at %d, it is %d, and its queue protects it for %d; %s", t.ID, w.started(before, t), w.clock, least, describe(t.Job))
		}
		if at, ran := before.bound[o]; ran {
			first = min(first, at)
		}
		if o.Status == cluster.Releasing {
			first = min(first, o.Started)
		}
	}
	if first != 0 && w.clock-first < least {
		return fmt.Errorf("%s started at %d, it is %d, and its queue protects it for %d", t.Job.ID, first, w.clock, least)
	}
	return nil
}

// started is when the task did; what was bound in this session has only just.
func (w *World) started(before *moment, t *cluster.Task) int64 {
	if at, ran := before.bound[t]; ran {
		return at
	}
	return w.clock
}

// protection is how long the job's tasks are left alone: the nearest queue that says so.
func (w *World) protection(j *cluster.Job, why engine.Reason) int64 {
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

// checkBudgets makes sure that as many are left running as budgets ask for, of
// whom somebody was evicted. Another form of a job may have more tasks, and ask
// for more; it is held to the lesser.
func (w *World) checkBudgets(before *moment, gone []*engine.Decision, swept map[*cluster.Job]int) error {
	for _, b := range w.State.View().Budgets() {
		hit := ""
		for _, d := range gone {
			if b.Covers(w.State.Job(d.Task.Job)) {
				hit = d.Task.ID()
			}
		}
		if hit == "" {
			continue
		}
		running, desired := 0, 0
		for _, j := range w.State.Jobs() {
			if !b.Covers(j) {
				continue
			}
			running += swept[j]
			desired += min(before.tasks[j], len(j.Tasks())-j.Ended())
			for _, t := range j.Tasks() {
				if t.Runs() {
					running++
				}
			}
		}
		if running < b.Required(desired) {
			return fmt.Errorf("%s was evicted: %d run of %d, and budget %s asks for %d", hit, running, desired, b.Name, b.Required(desired))
		}
	}
	return nil
}

// checkRankings makes sure that as many stay as are desired, and that nobody
// goes who is worth more than one who stays. Of those who go each was worth least
// when it was its turn, by what was worth what then.
func (w *World) checkRankings(out *engine.Outcome) error {
	for _, r := range out.Rankings {
		w.Retired += len(r.Jobs) - r.Desired
		for i, x := range r.Jobs {
			if x.Retired != (i >= r.Desired) || x.Retired != w.State.Job(x.Job).Retired || i > 0 && i <= r.Desired && x.Score.Total > r.Jobs[i-1].Score.Total {
				return fmt.Errorf("%s: of %d replicas %d are desired, and %s comes %d. with %d, retired: %v", r.Set, len(r.Jobs), r.Desired, x.Job, i+1, x.Score.Total, x.Retired)
			}
		}
	}
	return nil
}
