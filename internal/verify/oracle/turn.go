package oracle

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// turn has the decisions of a session for one job.
type turn struct {
	job      string
	evicted  []*engine.Decision // tasks that are evicted or move
	placed   []*engine.Decision
	landings []*engine.Decision // new locations of tasks that move
	extra    []*engine.Decision // placements of pending tasks of jobs of which other tasks move
	refusal  *engine.Refusal
}

// turns splits the events of a session into turns. An eviction that is for no job is in a
// turn without a name.
func turns(out engine.Outcome) []*turn {
	var all []*turn
	turnOf := func(job string) *turn {
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
			turnOf(e.Job).refusal = e.Refusal
		case engine.Evicted:
			t := turnOf(e.Decision.For)
			if len(t.placed) > 0 { // each surplus task has a turn of its own
				t = &turn{job: t.job}
				all = append(all, t)
			}
			t.evicted = append(t.evicted, e.Decision)
		case engine.BoundTo, engine.NominatedTo:
			if t := evictingTurn(all, e.Task); t != nil {
				t.landings = append(t.landings, e.Decision)
				continue
			}
			if len(all) > 0 && all[len(all)-1].placesExtra(e.Job, all) {
				all[len(all)-1].extra = append(all[len(all)-1].extra, e.Decision)
				continue
			}
			t := turnOf(e.Job)
			t.placed = append(t.placed, e.Decision)
		}
	}
	return all
}

// placesExtra reports whether a task of the job is placed in this turn because other tasks
// of the job move: the job's own turn is over, or not all tasks that move have a new
// location yet.
func (t *turn) placesExtra(job string, all []*turn) bool {
	moving, moves := 0, false
	for _, d := range t.evicted {
		if d.Reason == reasons[Consolidate] {
			moving++
			moves = moves || d.Task.Job == job
		}
	}
	over := slices.ContainsFunc(all, func(o *turn) bool { return o.job == job })
	return moves && len(t.landings) > 0 && (over || len(t.landings) < moving)
}

// evictingTurn returns the turn in which the task was evicted, or nil.
func evictingTurn(all []*turn, t cluster.TaskRef) *turn {
	for _, x := range all {
		if slices.ContainsFunc(x.evicted, func(d *engine.Decision) bool { return d.Task == t }) {
			return x
		}
	}
	return nil
}
