package cluster

import "slices"

// A task that moves is evicted, and at the same time room is reserved for it on another
// node. The reservation belongs to a second Task, the shadow, which is nominated there
// and is the landing of the task. When TaskSeen reports that the task is on no node any
// more, the task is nominated for the room of the landing. When TaskGone reports it, the
// landing is released: the task is pending, has ended, or is removed from its open job.

// Shadow returns a copy of the job in which the given tasks, which are evicted in order
// to move, are replaced by pending shadows. The engine places this copy to find room for
// them. The other tasks of the copy are those that are placed; pending and evicted tasks
// are left out. The copy is not in State. Transaction.AddLanding makes a placed shadow the
// landing of its task.
func (j *Job) Shadow(leaving []*Task) *Job {
	k := *j
	k.tasksOnNodes, k.landings = 0, 0
	alt := j.Alternatives[max(j.Chosen, 0)] // tasks that move keep their alternative
	alt.Tasks = nil
	moves := make(map[*Task]bool, len(leaving))
	for _, t := range leaving {
		moves[t] = true
	}
	for _, t := range j.Tasks() {
		if moves[t] {
			alt.Tasks = append(alt.Tasks, t.shadow(&k))
		} else if t.Placed() {
			alt.Tasks = append(alt.Tasks, t)
			k.tasksOnNodes++
		}
	}
	alt.Min = len(alt.Tasks) // room is needed for all of them
	if alt.Nested() {
		alt.MinSubgroups, alt.Subgroups = 0, slices.Clone(alt.Subgroups)
		for i := range alt.Subgroups {
			alt.Subgroups[i].Min, alt.Subgroups[i].MinSubgroups = 0, 0
		}
	}
	if k.Alternatives, k.Chosen = []Alternative{alt}, 0; k.tasksOnNodes == 0 {
		k.Chosen = -1
	}
	return &k
}

// shadow returns a pending shadow of the task, as a task of the job j.
func (t *Task) shadow(j *Job) *Task {
	return &Task{ID: t.ID + " (landing)", Name: t.Name, Role: t.Role, Index: t.Index, Job: j, Shape: t.Shape, Subgroup: t.Subgroup, transit: &transit{shadowOf: t}}
}

// ShadowOf returns the task that moves if t is its shadow, and nil otherwise.
func (t *Task) ShadowOf() *Task {
	if t.transit == nil {
		return nil
	}
	return t.transit.shadowOf
}

// Landing returns the shadow for which room is reserved on the node that the task moves
// to, or nil if the task does not move.
func (t *Task) Landing() *Task {
	if t.transit == nil {
		return nil
	}
	return t.transit.landing
}

// At returns the node that the task moves to, or the node that it is on if it does not
// move.
func (t *Task) At() *Node {
	if l := t.Landing(); l != nil {
		return l.Node
	}
	return t.Node
}

// addLanding makes the placed shadow the landing of its task, and records how to undo
// that.
func (p *taskStates) addLanding(shadow *Task) {
	job := shadow.Job
	p.changeLanding(shadow, shadow.ShadowOf().Job, +1)
	p.journal.recordOther(otherChange{landing: shadow, job: job})
}

// changeLanding makes the shadow a task of the job, and makes it the landing of its task
// (by +1) or ends that (-1).
func (p *taskStates) changeLanding(shadow *Task, job *Job, by int) {
	t := shadow.ShadowOf()
	shadow.Job = job
	t.Job.landings += int32(by)
	if by > 0 {
		p.setLanding(t, shadow)
	} else {
		p.setLanding(t, nil)
	}
	p.workload.update(t.Job)
}

// linkLanding sets the landing of the task, which may be nil, and records how to undo that.
func (p *taskStates) linkLanding(t, landing *Task) {
	if was := t.Landing(); p.journal.recording() {
		p.journal.recordUndo(func() { p.setLanding(t, was) })
	}
	p.setLanding(t, landing)
}

// setLanding is linkLanding without the journal.
func (p *taskStates) setLanding(t, landing *Task) {
	to := t.inTransit()
	to.landing = landing
	t.setTransit(to)
	p.roster.listMoving(t)
}

// takeLanding nominates the task, which has stopped on its old node, for the room that was
// reserved for its landing.
func (p *taskStates) takeLanding(t, shadow *Task) {
	to := shadow.state()
	p.clear(shadow)
	to.attempt = t.Attempt
	p.set(t, to)
}
