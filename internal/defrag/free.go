package defrag

import (
	"math"
	"slices"
)

// maxPreparing is how many moves may prepare one that serves the goal.
const maxPreparing = 32

// maxFailures is how many candidates in a row may gain nothing after a preparation: this number, or a
// quarter of the nodes if that is more.
const maxFailures = 256

// free makes moves that serve the goals Devices, Nodes and Room. If no move serves the goal any more,
// some moves that only make room usable may prepare one that does: a task with many cores keeps
// devices idle that a task of another node could use. Moves that prepared nothing are undone.
func (p *planner) free() error {
	goal := p.options.Goal
	for before := -1; before < len(p.plan.Moves); { // after some moves, others gain that did not before
		before = len(p.plan.Moves)
		if err := p.newSearch(goal).run(p.left(), math.MaxInt); err != nil {
			return err
		}
	}
	if goal == Room {
		return nil
	}
	prepare := p.newSearch(Room)
	for p.left() > 0 && p.steps < maxSteps {
		if gained, err := p.freePrepared(goal, prepare); !gained || err != nil {
			return err
		}
	}
	return nil
}

// left returns how many more tasks may be moved.
func (p *planner) left() int { return p.options.MostMoves - len(p.plan.Moves) }

// reached returns how far the goal is reached.
func (p *planner) reached(g Goal) int64 { return g.worth(p.total, 1).first }

// freePrepared makes a few moves of the search that prepares, and then moves that serve the goal. It
// keeps those that are needed, and reports whether the goal is served.
func (p *planner) freePrepared(goal Goal, prepare *search) (bool, error) {
	mark := p.state.Mark()
	defer p.state.Release(mark)
	from, before := len(p.plan.Moves), p.reached(goal)
	err := prepare.run(min(maxPreparing, p.left()), math.MaxInt)
	prepared := len(p.plan.Moves) - from
	if err == nil && prepared > 0 {
		err = p.newSearch(goal).run(p.left(), max(maxFailures, len(p.gauges)/4))
	}
	if err != nil {
		return false, err
	}
	reached := p.reached(goal)
	moves := slices.Clone(p.plan.Moves[from:])
	if reached <= before {
		p.state.Undo(mark)
		p.forget(from)
		return false, nil
	}
	// Leave out the moves that are not needed: many at once, then few, then one.
	for size := (prepared + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < prepared; {
			less := slices.Delete(slices.Clone(moves), at, min(at+size, prepared))
			p.state.Undo(mark)
			p.forget(from)
			ok, err := p.repeat(less)
			if err != nil {
				return false, err
			}
			if ok && p.reached(goal) >= reached {
				prepared -= len(moves) - len(less)
				moves = less
			} else {
				at += size
			}
		}
	}
	p.state.Undo(mark)
	p.forget(from)
	_, err = p.repeat(moves)
	return true, err
}
