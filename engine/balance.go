package engine

// fair reports whether the plan, which is carried out since the checkpoint, leaves the
// queues more even than they are without it. It takes the plan back.
func (r *room) fair(plan []*Victim, checkpoint int) bool {
	defer r.stmt.Rollback(checkpoint)
	var measures []func() Balance
	for p := range purposes {
		for i := range r.hooks.victims[p] {
			if h := &r.hooks.victims[p][i]; h.last != nil && h.last.Balance != nil {
				if measure := h.last.Balance(r.job, r.lacks, plan); measure != nil {
					measures = append(measures, measure)
				}
			}
		}
	}
	if len(measures) == 0 {
		return true
	}
	with := make([]Balance, len(measures))
	for i, measure := range measures {
		with[i] = measure()
	}
	r.stmt.Rollback(checkpoint)
	for i, measure := range measures {
		if !with[i].Below(measure()) {
			return false
		}
	}
	return r.err == nil
}
