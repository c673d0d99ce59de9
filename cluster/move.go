package cluster

import "slices"

// A task that moves is evicted, and room is reserved for it elsewhere, at the same
// time. A shadow holds the reservation: a nominated task that stands for it there
// until it has left its old node and takes the shadow's place.

// Shadow returns the job as it would be placed again: its bound tasks in the
// list, which are on their way out, have pending shadows in their stead. Tasks that
// wait are left out: they do not move. It is not in the State; what is placed of
// it becomes a reservation with Land.
func (j *Job) Shadow(leaving []*Task) *Job {
	k := *j
	k.attached, k.expected = 0, 0
	alt := j.Alternatives[max(j.Chosen, 0)] // what moves keeps its form
	alt.Tasks = nil
	goes := make(map[*Task]bool, len(leaving))
	for _, t := range leaving {
		goes[t] = true
	}
	for _, t := range j.Tasks() {
		if goes[t] {
			alt.Tasks = append(alt.Tasks, t.shadow(&k))
		} else if t.Placed() { // what is pending stays so, and what was evicted is to be
			alt.Tasks = append(alt.Tasks, t)
			k.attached++
		}
	}
	alt.Min = len(alt.Tasks) // all of them land
	if alt.Nested() {
		alt.MinSubgroups, alt.Subgroups = 0, slices.Clone(alt.Subgroups)
		for i := range alt.Subgroups {
			alt.Subgroups[i].Min, alt.Subgroups[i].MinSubgroups = 0, 0
		}
	}
	if k.Alternatives, k.Chosen = []Alternative{alt}, 0; k.attached == 0 {
		k.Chosen = -1
	}
	return &k
}

// shadow stands for the task, in a job as it would be placed again.
func (t *Task) shadow(j *Job) *Task {
	return &Task{ID: t.ID + " (landing)", Name: t.Name, Role: t.Role, Index: t.Index, Job: j, Shape: t.Shape, Subgroup: t.Subgroup, shadows: t}
}

// Shadows is the task that this one stands for, nil if it stands for itself.
func (t *Task) Shadows() *Task { return t.shadows }

// Landing is the shadow that holds room for a task that moves, nil if none does.
func (t *Task) Landing() *Task { return t.landing }

// At is the node that the task is on or, while it moves, on its way to.
func (t *Task) At() *Node {
	if t.landing != nil {
		return t.landing.Node
	}
	return t.Node
}

func (p *standings) landShadow(shadow *Task) {
	job := shadow.Job
	p.land(shadow, shadow.shadows.Job, +1)
	p.journal.note(rare{landing: shadow, job: job})
}

// land gives the shadow to the job; by says whether its task gains (+1) or loses
// (-1) a landing.
func (p *standings) land(shadow *Task, job *Job, by int) {
	t := shadow.shadows
	shadow.Job = job
	t.Job.expected += by
	if t.landing = nil; by > 0 {
		t.landing = shadow
	}
	p.roster.listMoving(t)
	p.workload.settle(t.Job)
}

// link sets the landing of the task.
func (p *standings) link(t, landing *Task) {
	if was := t.landing; p.journal.recording() {
		p.journal.cold(func() { p.relink(t, was) })
	}
	p.relink(t, landing)
}

func (p *standings) relink(t, landing *Task) {
	t.landing = landing
	p.roster.listMoving(t)
}

// arrive gives the task that has left its node the room that its landing held.
func (p *standings) arrive(t, shadow *Task) {
	to := shadow.standing()
	p.clear(shadow)
	to.attempt = t.Attempt
	p.stand(t, to)
}
