package engine

// A plan that is compared with others is tried: it is carried out and rolled back. If nothing is
// left to compare it with, it stays carried out, because carrying it out again would give the same
// result. On large clusters, that is most plans.

// carriedOut is a plan that is carried out in the statement.
type carriedOut struct {
	mark int      // the checkpoint before it
	left *Refusal // what Place returned
}

// isFinal reports whether the plan is used if it works, whatever other plans there are for the
// same tasks. The session must not explain, because explanations try other plans before.
func (r *room) isFinal(plan []*Victim) bool {
	return plan != nil && r.plan == nil && !r.want.last && !small(r.view) && !r.placer.explainer.all && !r.mayThinOut(plan)
}

// carryOutOnce carries out a plan that was found by a search in the given way. If it works, its
// changes stay in the statement until withdraw is called. Otherwise it rolls them back and
// returns false.
func (r *room) carryOutOnce(plan []*Victim, w way) bool {
	r.markPassed()
	mark, search := r.stmt.Checkpoint(), r.newPlanSearch(plan)
	r.stmt.planSearch = search
	left, spent, ok := r.trial.perform(plan)
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
