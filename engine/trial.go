package engine

import (
	"slices"
)

// trial carries plans out, judges them by the State that they end in, and takes them back.
type trial struct {
	want   *want
	leaver *leaver
	placer *placer
	stmt   *Statement
	fault  *fault
	tries  int // plans that were put to Place
	limit  int // tries that the search which runs may reach
}

// tried is the plan with what it costs; nil where it does not work.
func (x *trial) tried(plan []*Victim) ([]*Victim, cost) {
	if plan != nil {
		if spent, ok := x.try(plan); ok {
			return plan, spent
		}
	}
	return nil, cost{}
}

// over reports whether the search has used up its tries.
func (x *trial) over() bool { return x.tries >= x.limit || x.fault.err != nil }

// works reports whether the plan works, and takes it back.
func (x *trial) works(plan []*Victim) bool {
	_, ok := x.try(plan)
	return ok
}

// try carries the plan out, sees what it costs, and takes it back.
func (x *trial) try(plan []*Victim) (cost, bool) {
	mark := x.stmt.Checkpoint()
	_, ok := x.carryOut(plan)
	ok = ok && !slices.ContainsFunc(plan, landsBack)
	spent := x.leaver.victims.costOf(plan)
	if ok {
		spent.beyond = x.stmt.beyond(mark)
	}
	if x.want.last && ok {
		ok = x.fair(plan, mark)
	} else {
		x.stmt.Rollback(mark)
	}
	return spent, ok
}

// carryOut carries the plan out: the victims leave, Place puts the job where they were,
// and those that move land. It leaves the statement as it is; false means that the
// plan does not work.
func (x *trial) carryOut(plan []*Victim) (*Refusal, bool) {
	x.tries++
	if !x.leaver.leaveAll(plan) {
		return &Refusal{}, false
	}
	mark := x.stmt.Checkpoint()
	if x.want.exactly && !x.seat(nil) {
		return &Refusal{}, false
	}
	left := x.place()
	fits := x.placer.aim.met(x.want.job, left) && x.fault.err == nil
	if fits && hasMoves(plan) && !x.land(plan) {
		x.stmt.Rollback(mark)
		return x.together(plan)
	}
	return left, fits
}

// place is Place in a form that room is made for: the victims may leave for that one,
// and others are looked at in their turn.
func (x *trial) place() *Refusal {
	return x.placer.placeChoices(x.want.job, func(from int) bool { return from == x.want.choice })
}

// hasMoves reports whether victims of the plan move.
func hasMoves(plan []*Victim) bool {
	return slices.ContainsFunc(plan, func(v *Victim) bool { return v.Purpose == Move })
}
