package engine

// A plan that is compared with others is tried: it is carried out and rolled back. If nothing is
// left to compare it with, it stays carried out, because carrying it out again would give the same
// result. On large clusters, that is most plans.
//
// If the job lacks one task and one victim makes room for it, the search itself has evicted that
// victim already. The eviction then stays, and only the task is placed.

// staying is a search after which the eviction of a single victim may stay in the statement.
type staying struct {
	room   *room
	mark   int         // the checkpoint before the search
	first  *Victim     // the victim that was evicted last while no other was
	search *PlanSearch // the result of newPlanSearch before that
	stays  bool        // the victim is the plan that was found, and is evicted in the statement
}

// begin is called before the victim is evicted. No other victim is evicted then.
func (s *staying) begin(v *Victim) {
	s.room.markPassed()
	s.first, s.search = v, s.room.newPlanSearch([]*Victim{v})
}

// mayStay reports whether an eviction of the search may stay in the statement.
func (r *room) mayStay() bool {
	return len(r.want.lacks) == 1 && !r.want.exactly && r.mayBeFinal()
}

// carriedOut is a plan that is carried out in the statement.
type carriedOut struct {
	mark int      // the checkpoint before it
	left *Refusal // what Place returned
}

// isFinal reports whether the plan is used if it works, whatever other plans there are for the
// same tasks. The session must not explain, because explanations try other plans before.
func (r *room) isFinal(plan []*Victim) bool {
	return plan != nil && r.mayBeFinal() && !r.mayThinOut(plan)
}

// mayBeFinal is isFinal before a plan is known.
func (r *room) mayBeFinal() bool {
	return r.plan == nil && !r.want.last && !small(r.view) && !r.placer.explainer.all
}

// carryOutOnce carries out a plan that was found by a search in the given way. If it works, its
// changes stay in the statement until withdraw is called. Otherwise it rolls them back and
// returns false.
func (r *room) carryOutOnce(plan []*Victim, w way, once *staying) bool {
	r.markPassed()
	mark, search, stays := r.stmt.Checkpoint(), (*PlanSearch)(nil), once != nil && once.stays
	if stays {
		mark, search = once.mark, once.search
		r.stmt.setPlanSearch(mark, search)
	} else {
		search = r.newPlanSearch(plan)
	}
	r.stmt.planSearch = search
	left, spent, ok := r.trial.perform(plan, mark, stays)
	r.stmt.planSearch = nil
	if !ok {
		r.stmt.Rollback(mark)
		return false
	}
	r.plan, r.cost, r.found, r.done = plan, spent, w, &carriedOut{mark, left}
	r.describe(search, plan)
	return true
}

// withdraw rolls back the plan if it is carried out. The room keeps the plan.
func (r *room) withdraw() {
	if r.done != nil {
		r.stmt.Rollback(r.done.mark)
		r.done = nil
	}
}
