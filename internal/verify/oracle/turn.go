package oracle

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// turn is what a session did for one job.
type turn struct {
	job     string
	evicted []*engine.Decision
	placed  []*engine.Decision
	landed  []*engine.Decision // new places of tasks that move
	extra   []*engine.Decision // tasks of theirs that had been waiting
	refusal *engine.Refusal
}

// turns reads the session's events: for which job the turn was, and what came of it.
// What belongs to no turn comes under no name.
func turns(out engine.Outcome) []*turn {
	var all []*turn
	of := func(job string) *turn {
		if n := len(all); n > 0 && all[n-1].job == job {
			return all[n-1]
		}
		all = append(all, &turn{job: job})
		return all[len(all)-1]
	}
	for i := range out.Events {
		e := &out.Events[i]
		switch e.Kind {
		case engine.Refused:
			of(e.Job).refusal = e.Refusal
		case engine.Evicted:
			t := of(e.Decision.For)
			if len(t.placed) > 0 { // a task beyond the minimum has a turn of its own
				t = &turn{job: t.job}
				all = append(all, t)
			}
			t.evicted = append(t.evicted, e.Decision)
		case engine.BoundTo, engine.NominatedTo:
			if t := evictor(all, e.Task); t != nil {
				t.landed = append(t.landed, e.Decision)
				continue
			}
			if len(all) > 0 && all[len(all)-1].brings(e.Job, all) {
				all[len(all)-1].extra = append(all[len(all)-1].extra, e.Decision)
				continue
			}
			t := of(e.Job)
			t.placed = append(t.placed, e.Decision)
		}
	}
	return all
}

// brings reports whether a task of the job is placed in this turn because others
// of it move: its own turn is over, or not all that move have landed yet.
func (t *turn) brings(job string, all []*turn) bool {
	moving, moves := 0, false
	for _, d := range t.evicted {
		if d.Reason == reasons[Consolidate] {
			moving++
			moves = moves || d.Task.Job == job
		}
	}
	over := slices.ContainsFunc(all, func(o *turn) bool { return o.job == job })
	return moves && len(t.landed) > 0 && (over || len(t.landed) < moving)
}

// evictor is the turn in which the task was evicted, if any.
func evictor(all []*turn, t cluster.TaskRef) *turn {
	for _, x := range all {
		for _, d := range x.evicted {
			if d.Task == t {
				return x
			}
		}
	}
	return nil
}
