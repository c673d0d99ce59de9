package engine

import "github.com/berth-project/berth/cluster"

// reservations handles the reservations of earlier sessions. A reservation is bound once its
// room is free. It is withdrawn if its node cannot keep it, or if it was held for too long.
type reservations struct {
	clerk *clerk
	hold  int64 // how long a reservation is held, in nanoseconds; 0: as long as its node can keep it
}

// withdrawLost is withdrawLostIn in a statement of its own.
func (p *reservations) withdrawLost() {
	nominated := p.clerk.view.Nominated()
	if len(nominated) == 0 && len(p.clerk.view.Moving()) == 0 {
		return
	}
	stmt := p.clerk.begin()
	p.withdrawLostIn(stmt, nominated)
	stmt.Commit()
}

// withdrawLostIn withdraws reservations that their node cannot keep any more, and all
// reservations of gangs that have lost some. nominated holds all nominated tasks of the State.
func (p *reservations) withdrawLostIn(stmt *Statement, nominated []*cluster.Task) {
	var intact *cluster.Job // it was not torn when it was last examined; a gang is examined once and not for each of its tasks
	lost := func(held *cluster.Task, j *cluster.Job) bool {
		if !p.canKeep(held) || j != intact && torn(j) {
			intact = nil
			return true
		}
		intact = j
		return false
	}
	for _, t := range nominated {
		if t.Status == cluster.Nominated && lost(t, t.Job) {
			stmt.withdraw(t.Job, true)
		}
	}
	for _, t := range p.clerk.view.Moving() {
		if l := t.Landing(); l != nil && lost(l, t.Job) {
			stmt.withdraw(t.Job, true)
		}
	}
}

// canKeep reports whether the node of the task can still provide the reserved room, and no
// static filter rejects the node for the task.
func (p *reservations) canKeep(t *cluster.Task) bool {
	if !t.Node.Keeps(t) {
		return false
	}
	for _, h := range p.clerk.hooks.filters {
		if h.static && (h.shapes == nil || h.shapes(t.Shape)) && h.fn(t.Shape, t.Node) != nil {
			return false
		}
	}
	return true
}

// withdrawExpired withdraws reservations that have been held for too long. It is called after
// bindReady. An evicted task that still holds its room after that time is marked as overdue:
// its room counts as in use again, so that jobs do not wait for it. Reservations on that room
// are withdrawn in the same statement, since the room would otherwise be in use and reserved
// at once.
func (p *reservations) withdrawExpired() {
	if p.hold <= 0 {
		return
	}
	expired := func(t *cluster.Task) bool { return p.clerk.now-t.ReservedAt() > p.hold }
	stmt := p.clerk.beginStep()
	for _, t := range p.clerk.view.Nominated() {
		if t.Status == cluster.Nominated && expired(t) {
			stmt.withdraw(t.Job, !t.Job.Running()) // a gang without a running task also loses the landings of its tasks
		}
	}
	for _, t := range p.clerk.view.Moving() {
		if l := t.Landing(); l != nil && expired(l) {
			stmt.withdraw(t.Job, true)
		}
	}
	late := false
	for _, t := range p.clerk.view.Releasing() {
		if at, evicted := t.EvictedAt(); evicted && !t.Overdue() && p.clerk.now-at > p.hold {
			stmt.markOverdue(t)
			late = true
		}
	}
	if late {
		p.withdrawLostIn(stmt, p.clerk.view.Nominated())
	}
	stmt.Commit()
	p.clerk.endStep(stmt)
}

// bindReady binds each nominated task if its reserved room is free now. The minimum of a gang is
// bound together or not at all.
func (p *reservations) bindReady() []Decision {
	nominated := p.clerk.view.Nominated()
	if len(nominated) == 0 {
		return nil
	}
	stmt := p.clerk.begin()
	for _, tasks := range byJob(nominated) {
		job, mark := tasks[0].Job, stmt.Checkpoint()
		for _, t := range tasks {
			stmt.Bind(t)
		}
		if alt := &job.Alternatives[max(0, job.Chosen)]; job.Chosen >= 0 && (!canStart(alt) || startsInPart(alt, tasks)) {
			stmt.Rollback(mark)
		}
	}
	return stmt.Commit()
}

// byJob groups tasks by job. Jobs are in the order of their first tasks. The tasks are sorted
// by ID, which does not keep the tasks of a job together: job/ml/mnist/worker-0 is sorted
// between tasks of job/ml.
func byJob(tasks []*cluster.Task) [][]*cluster.Task {
	var out [][]*cluster.Task
	at := map[*cluster.Job]int{}
	for _, t := range tasks {
		i, known := at[t.Job]
		if !known {
			i = len(out)
			at[t.Job] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], t)
	}
	return out
}

// torn reports whether a gang with no running task has lost part of its reservations. The
// remaining reservations are useless and must be withdrawn.
func torn(j *cluster.Job) bool { return !j.Running() && !j.HasMinimum() }
