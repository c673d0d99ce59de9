package engine

// sweeping calls the Sweep hooks after all jobs have had their turns.
type sweeping struct {
	clerk *clerk
	swept *swept
}

func (w *sweeping) run() []Decision {
	if len(w.clerk.hooks.sweeps) == 0 {
		return nil
	}
	stmt := w.clerk.beginStep()
	stmt.position()
	w.markTorn(stmt)
	for _, h := range w.clerk.hooks.sweeps {
		h.fn(stmt)
	}
	out := stmt.Commit()
	w.clerk.endStep(stmt)
	return out
}

// markTorn records in the State since when gangs run below their minimum. It looks only at
// jobs that changed since the last sweep.
func (w *sweeping) markTorn(stmt *Statement) {
	state := w.clerk.view
	if w.swept.view != state {
		w.swept.view, w.swept.jobs = state, 0
	}
	since := w.swept.jobs
	w.swept.jobs = state.Recent().JobsVersion()
	state.Recent().Jobs(since, func(slot int) {
		j := state.JobAt(slot)
		switch {
		case j == nil || !state.IsPending(j) && j.BelowMinimumSince == 0:
		case !j.Running() || j.HasMinimum():
			stmt.tx.SetBelowMinimum(j, 0)
		case j.BelowMinimumSince == 0:
			stmt.tx.SetBelowMinimum(j, max(1, w.clerk.now))
		}
	})
}
