package cluster

// A task that moves is evicted and promised room elsewhere at the same time. The
// promise is kept by a shadow: a nominated task that stands for it there until
// it has left its old node and takes the shadow's place.

// Shadow returns the job as it would be placed again: its bound tasks in the
// list, which are on their way out, have pending shadows in their stead. Tasks that
// wait are left out: they do not move. It is in nobody's books; what is placed of
// it becomes a promise with Land.
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
			alt.Tasks = append(alt.Tasks, &Task{ID: t.ID + " (landing)", Name: t.Name, Role: t.Role, Index: t.Index, Job: &k, Shape: t.Shape, Subgroup: t.Subgroup, shadows: t})
		} else if t.Node != nil { // what is pending stays so
			alt.Tasks = append(alt.Tasks, t)
			k.attached++
		}
	}
	alt.Min = len(alt.Tasks) // all of them land
	if k.Alternatives, k.Chosen = []Alternative{alt}, 0; k.attached == 0 {
		k.Chosen = -1
	}
	return &k
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

// Land turns a placed shadow into a promise to the task it stands for.
func (s *State) Land(shadow *Task) {
	t := shadow.shadows
	t.landing = shadow
	shadow.Job = t.Job
	t.Job.expected++
	s.moving[t.ID] = t
	s.settle(t.Job)
}

// Unland undoes Land: the shadow stands there on its own again.
func (s *State) Unland(shadow *Task, job *Job) {
	t := shadow.shadows
	t.landing = nil
	t.Job.expected--
	shadow.Job = job
	delete(s.moving, t.ID)
	s.settle(t.Job)
}

// count adds (by +1) or takes away (-1) a task that is on a node, or a landing.
func (j *Job) count(t *Task, by int) {
	if t.shadows != nil {
		j.expected += by
	} else {
		j.attached += by
	}
}

// Strand takes the promise back: the task that moves has nowhere to go, and will
// be pending when it has left.
func (s *State) Strand(t *Task) {
	if t.landing != nil {
		s.Clear(t.landing)
	}
}

// Moving are the tasks that are on their way to another node, by ID.
func (s *State) Moving() []*Task { return byTaskID(s.moving) }

// arrive gives the task that has left its node the room that its shadow held.
func (s *State) arrive(t, shadow *Task) {
	n, claims := shadow.Node, shadow.Claims
	promised := shadow.Promised
	s.Clear(shadow)
	chosen := t.Job.Chosen
	s.attach(t, n, claims, Nominated)
	t.Promised = promised
	s.nominated[t.ID] = t
	if chosen < 0 {
		s.choose(t)
	}
}
