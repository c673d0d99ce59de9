package whatif

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// change is a change of the State that is made before a session.
type change struct {
	kind wire.ChangeKind
	text string // completes the sentence "It would fit …"
	// cost orders the changes that help, the lowest first. It is a rough percentage: how
	// much of the request is given up, or how much the change takes from other workloads or
	// costs in money.
	cost  int
	apply func(*cluster.State) error
}

// verdict says whether the workload would be placed after changes.
type verdict struct {
	fits    bool            // the minimum is placed, or all tasks if only surplus was refused
	refusal *engine.Refusal // why not; may be nil
}

// lab tries changes: it applies them, runs a session, and undoes both. Its budget is a
// number of tries and not a time, so that answers are the same on every machine.
type lab struct {
	engine      *engine.Engine
	workload    *workload
	now         int64
	tries       int                  // sessions that were run
	budget      int                  // sessions that may be run
	laterTime   map[*change]int64    // the time at which a change is tried, if that is later than now
	alsoEvicted map[*change][]string // for a change that was tried alone and helps: the workloads that are evicted for the workload in addition, without those that move
	err         error                // the first error of the engine; no verdict is valid after it
}

// noTriesLeft reports whether the budget is used up, or the engine has failed.
func (l *lab) noTriesLeft() bool { return l.tries >= l.budget || l.err != nil }

// try applies the changes, runs a session in which all pending jobs take part, and undoes
// both. If no tries are left or a change cannot be applied, the verdict is that the workload
// does not fit.
func (l *lab) try(changes ...*change) verdict { return l.tryAndRead(nil, changes...) }

// tryAndRead is like try, and calls read with the State after the session, before it is
// undone.
func (l *lab) tryAndRead(read func(*cluster.State), changes ...*change) verdict {
	if l.noTriesLeft() {
		return verdict{}
	}
	l.tries++
	state := l.workload.state
	defer undoAtEnd(state)()
	now := l.now
	for _, c := range changes {
		if err := c.apply(state); err != nil {
			return verdict{}
		}
		now = max(now, l.laterTime[c])
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
		l.alsoEvicted[changes[0]] = evictedFor(out.Decisions, l.workload.id)
	}
	if read != nil {
		read(state)
	}
	return v
}

// undoAtEnd marks the State, and returns a function that undoes all changes since the mark.
func undoAtEnd(s *cluster.State) func() {
	mark := s.Mark()
	return func() {
		s.Undo(mark)
		s.Release(mark)
	}
}

// evictedFor returns the workloads that are evicted for the workload with the ID, without
// those that move.
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
