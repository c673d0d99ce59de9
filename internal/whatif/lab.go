package whatif

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// change is one change of the State, which is made before a session.
type change struct {
	kind wire.Kind
	text string // completes "It would fit …"
	// cost orders the changes that help. It is roughly how much of the request is given
	// up, or how much of other workloads or of money it takes, in percent.
	cost  int
	apply func(*cluster.State) error
}

// verdict is whether the workload fits after changes, or why not.
type verdict struct {
	fits    bool
	refusal *engine.Refusal
}

// lab tries changes: it applies them, runs a session, and undoes both. Its budget is a
// number of tries and not a time, so that answers are the same on every machine.
type lab struct {
	engine   *engine.Engine
	workload *workload
	now      int64
	tries    int
	budget   int
	at       map[*change]int64    // the time at which a change is tried, if that is later than now
	evicted  map[*change][]string // for a change that was tried alone and helps: the workloads that are evicted for the workload in addition, without those that move
	err      error                // the first error of the engine; no verdict is valid after it
}

// spent reports whether no further try is allowed.
func (l *lab) spent() bool { return l.tries >= l.budget || l.err != nil }

// try applies the changes, runs a full session, in which all pending jobs compete, and
// undoes both. If a change cannot be applied, the workload does not fit.
func (l *lab) try(changes ...*change) verdict { return l.tryAnd(nil, changes...) }

// tryAnd is try, and calls look with the State after the session.
func (l *lab) tryAnd(look func(*cluster.State), changes ...*change) verdict {
	if l.spent() {
		return verdict{}
	}
	l.tries++
	state := l.workload.state
	defer undoing(state)()
	now := l.now
	for _, c := range changes {
		if err := c.apply(state); err != nil {
			return verdict{}
		}
		now = max(now, l.at[c])
	}
	out, err := sim.Session(l.engine, state, engine.Options{Now: now})
	if err != nil {
		l.err = err
		return verdict{}
	}
	var v verdict
	for _, r := range out.Refusals {
		if r.Job == l.workload.id {
			v.refusal = r
		}
	}
	v.fits = l.workload.satisfied()
	if v.fits && len(changes) == 1 {
		l.evicted[changes[0]] = evictedFor(out.Decisions, l.workload.id)
	}
	if look != nil {
		look(state)
	}
	return v
}

// undoing marks the State, and returns a function that undoes all changes since.
func undoing(s *cluster.State) func() {
	mark := s.Mark()
	return func() {
		s.Undo(mark)
		s.Release(mark)
	}
}

// evictedFor are the workloads that are evicted for the workload, without those that move.
func evictedFor(decisions []engine.Decision, id string) []string {
	var out []string
	for i := range decisions {
		d := &decisions[i]
		if job := d.Task.Job; d.Action == engine.EvictTask && d.For == id && d.Landing == "" && !slices.Contains(out, job) {
			out = append(out, job)
		}
	}
	return out
}
