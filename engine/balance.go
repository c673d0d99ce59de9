package engine

// fair reports whether the plan makes every Balance lower than it is without the plan. The
// plan must have been carried out since the checkpoint; fair undoes it.
func (x *trial) fair(plan []*Victim, checkpoint int) bool {
	defer x.stmt.Rollback(checkpoint)
	var measures []func() Balance
	for p := range purposes {
		for i := range x.placer.finder.hooks.victims[p] {
			if h := &x.placer.finder.hooks.victims[p][i]; h.last != nil && h.last.Balance != nil {
				if measure := h.last.Balance(x.want.job, x.want.lacks, plan); measure != nil {
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
	x.stmt.Rollback(checkpoint)
	for i, measure := range measures {
		if !with[i].Below(measure()) {
			return false
		}
	}
	return x.fault.err == nil
}
