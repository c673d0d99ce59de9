package engine

import "github.com/berth-project/berth/cluster"

// promises are the reservations that earlier sessions made: they are bound once their
// room is free, and withdrawn where they cannot be kept or have been held for too long.
type promises struct {
	clerk *clerk
	hold  int64 // how long room is held, in nanoseconds; 0: for as long as its node can keep it
}

// withdrawLost releases, in a statement of its own, reservations that cannot be kept.
func (p *promises) withdrawLost() {
	stmt := p.clerk.begin()
	p.withdrawLostIn(stmt)
	stmt.Commit()
}

// withdrawLostIn releases reservations that their node cannot keep any more, or that
// are of a gang which has lost others.
func (p *promises) withdrawLostIn(stmt *Statement) {
	for _, t := range p.clerk.view.Nominated() {
		if t.Status == cluster.Nominated && (!p.canKeep(t) || torn(t.Job)) {
			stmt.withdraw(t.Job, true)
		}
	}
	for _, t := range p.clerk.view.Moving() {
		if l := t.Landing(); l != nil && (!p.canKeep(l) || torn(t.Job)) {
			stmt.withdraw(t.Job, true)
		}
	}
}

// canKeep reports whether the node still has what the task was promised, and is
// still one that the task can be on.
func (p *promises) canKeep(t *cluster.Task) bool {
	if !t.Node.Keeps(t) {
		return false
	}
	for _, h := range p.clerk.hooks.shapeFilters {
		if h.static && (h.shapes == nil || h.shapes(t.Shape)) && h.fn(t.Shape, t.Node) != nil {
			return false
		}
	}
	return true
}

// withdrawExpired releases reservations that have been held for too long, once
// those that can be bound are bound. An evicted task that has not left by then is
// overdue: its room counts as held, and jobs that wait for it look elsewhere. The
// statement withdraws what is reserved on that room as well: apart from it, the room
// would be held and reserved at once.
func (p *promises) withdrawExpired() {
	if p.hold <= 0 {
		return
	}
	expired := func(t *cluster.Task) bool { return p.clerk.now-t.Promised > p.hold }
	stmt := p.clerk.begin()
	for _, t := range p.clerk.view.Nominated() {
		if t.Status == cluster.Nominated && expired(t) {
			stmt.withdraw(t.Job, !t.Job.Running()) // a gang of which nothing runs is withdrawn as a whole
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
		p.withdrawLostIn(stmt)
	}
	stmt.Commit()
}

// bindReady binds the tasks whose reserved room is free by now: of a gang, the
// minimum together or none.
func (p *promises) bindReady() []Decision {
	stmt := p.clerk.begin()
	for _, tasks := range byJob(p.clerk.view.Nominated()) {
		job, mark := tasks[0].Job, stmt.Checkpoint()
		for _, t := range tasks {
			stmt.Bind(t)
		}
		if alt := &job.Alternatives[max(0, job.Chosen)]; job.Chosen >= 0 && (!startable(alt) || startsInPart(alt, tasks)) {
			stmt.Rollback(mark)
		}
	}
	return stmt.Commit()
}

// byJob groups tasks by job, in the order in which each job's first task comes. The
// IDs of tasks do not group them: job/ml/mnist/worker-0 sorts between tasks of job/ml.
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

// torn reports whether a gang with no running task has lost part of its
// reservations. The remaining ones are useless and must be released.
func torn(j *cluster.Job) bool { return !j.Running() && !j.Stands() }
