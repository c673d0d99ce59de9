package engine

import (
	"slices"
)

// trial tries plans: it carries a plan out, checks the result, and rolls it back.
type trial struct {
	want    *want
	evictor *evictor
	placer  *placer
	stmt    *Statement
	fault   *fault
	tries   int // how many plans were carried out so far
	limit   int // how many tries end the present search
}

// tried returns the plan with its cost, or nil if the plan does not work.
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

// works reports whether the plan works, and rolls it back.
func (x *trial) works(plan []*Victim) bool {
	_, ok := x.try(plan)
	return ok
}

// try carries the plan out, computes its cost, and rolls it back. It reports whether the plan
// works. As a last resort, the plan must also make the shares of queues more even.
func (x *trial) try(plan []*Victim) (cost, bool) {
	mark := x.stmt.Checkpoint()
	_, spent, ok := x.perform(plan, mark, false)
	if x.want.last && ok {
		ok = x.fair(plan, mark)
	} else {
		x.stmt.Rollback(mark)
	}
	return spent, ok
}

// perform carries the plan out and computes its cost. The checkpoint is that before the plan. If
// evicted is set, its victims are evicted already. perform returns what Place returned, and reports
// whether the plan works. The changes stay in the statement in both cases.
func (x *trial) perform(plan []*Victim, mark int, evicted bool) (*Refusal, cost, bool) {
	left, ok := x.carryOut(plan, evicted)
	ok = ok && !slices.ContainsFunc(plan, landsBack)
	spent := x.evictor.victims.costOf(plan)
	if ok {
		spent.beyond = x.stmt.beyond(mark)
	}
	return left, spent, ok
}

// carryOut carries the plan out: it evicts the victims, places the job, and reserves room for
// the victims that move. If evicted is set, the victims are evicted already. It returns what Place
// returned, and reports whether the plan works. The changes stay in the statement in both cases;
// the caller rolls them back.
func (x *trial) carryOut(plan []*Victim, evicted bool) (*Refusal, bool) {
	x.tries++
	if !evicted && !x.evictor.evictAll(plan) {
		return &Refusal{}, false
	}
	mark := x.stmt.Checkpoint()
	if x.want.exactly && !x.seat(nil) {
		return &Refusal{}, false
	}
	left := x.place()
	fits := x.placer.aim.met(x.want.job, left) && x.fault.err == nil
	if fits && hasMoves(plan) && !x.reserveMoves(plan) {
		x.stmt.Rollback(mark)
		return x.together(plan)
	}
	return left, fits
}

// place is Place, restricted to the alternatives that room is made for. The hooks allowed the
// victims for these alternatives only.
func (x *trial) place() *Refusal {
	return x.placer.placeChoices(x.want.job, func(from int) bool { return from == x.want.choice })
}

// hasMoves reports whether some victims of the plan move.
func hasMoves(plan []*Victim) bool {
	return slices.ContainsFunc(plan, func(v *Victim) bool { return v.Purpose == Move })
}
