package cluster

import "slices"

// isHeldBack reports whether the job is not pending at the time because a binding was refused.
func (j *Job) isHeldBack(now int64) bool { return j.BindRefused != nil && j.BindRefused.RetryAt > now }

// refuseBinding notes that a binding of the job was refused, and that the job is not pending
// before the time. A refusal during a back-off does not count: several members of a gang may
// be refused at once.
func (w *workload) refuseBinding(j *Job, retryAt int64) {
	p := Parked{Tries: 1, RetryAt: retryAt}
	if was := j.BindRefused; was != nil {
		if p.Tries = was.Tries; was.RetryAt <= w.tree.now {
			p.Tries++
		}
		p.RetryAt = max(retryAt, was.RetryAt)
	}
	to := j.status()
	to.bindRefused = &p
	w.changeStatus(j, to)
}

// acceptBinding notes that a binding of the job was made.
func (w *workload) acceptBinding(j *Job) {
	if j.BindRefused != nil {
		to := j.status()
		to.bindRefused = nil
		w.changeStatus(j, to)
	}
}

// endingBackOffs returns the jobs that are pending again at the time. The caller sets the clock of
// State to it and updates them.
func (w *workload) endingBackOffs(now int64) []*Job {
	if len(w.roster.heldBack) == 0 {
		return nil
	}
	ending := slices.DeleteFunc(byID(w.roster.heldBack), func(j *Job) bool { return j.pendingAt > 0 || j.isHeldBack(now) })
	if w.journal.recording() { // it is undone after the clock
		w.journal.recordUndo(func() {
			for _, j := range ending {
				w.update(j)
			}
		})
	}
	return ending
}

// listHeldBack lists the job if a binding was refused.
func (r *roster) listHeldBack(j *Job) {
	keepIf(j.BindRefused != nil && r.knows(j), r.heldBack, j.ID, j)
}

// HeldBack returns when the next job is pending again that is held back because a binding of it
// was refused, in nanoseconds since 1970; 0 if there is none.
func (v View) HeldBack() int64 {
	next := int64(0)
	for _, j := range v.state.roster.heldBack { // the order has no effect
		if at := j.BindRefused.RetryAt; at > v.Now() && (next == 0 || at < next) {
			next = at
		}
	}
	return next
}
