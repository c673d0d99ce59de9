package cluster

// These methods let the tests of this package make single steps. Other packages call
// Apply or use a Transaction.

func (s *State) AddNode(n *Node) error { return s.Apply(NodePut{Node: *n}) }

func (s *State) AddJob(j *Job) error { return s.Apply(JobPut{Job: *j}) }

func (s *State) RemoveJob(id string) error { return s.Apply(JobGone{Job: id}) }

func (s *State) SetQueue(q *Queue) error { return s.Apply(QueuePut{Queue: *q}) }

func (s *State) Place(t *Task, n *Node, claims []Claim, now int64) error {
	x := Transaction{state: s}
	return x.Place(t, n, claims, now)
}

func (s *State) Restore(t *Task, n *Node, claims []Claim, started int64) error {
	if err := s.CanRun(t, n, claims); err != nil {
		return err
	}
	return s.Apply(SeenOn(t, n, claims, started))
}

func (s *State) Evict(t *Task) error { return s.taskStates.evict(t, "", 0) }

func (s *State) Clear(t *Task) { s.taskStates.clear(t) }

func (s *State) DropLanding(t *Task) { s.taskStates.dropLanding(t) }

func (s *State) Bind(t *Task, now int64) bool {
	x := Transaction{state: s}
	return x.Bind(t, now)
}

func (s *State) Nominate(t *Task, now int64) {
	x := Transaction{state: s}
	x.Nominate(t, now)
}

func (s *State) AddLanding(shadow *Task) { s.taskStates.addLanding(shadow) }

func (s *State) Retire(j *Job) { s.workload.retire(j) }

func (s *State) KeepGroup(j *Job) { s.sets.keepGroup(j) }

func (s *State) Scale(name string, desired int) error { return s.Apply(SetScaled{name, desired}) }

func (s *State) Observe(name string, free []Bytes) error {
	read := map[string]Bytes{}
	n := s.Node(name)
	for i, v := range free {
		if v >= 0 {
			read[n.Devices[i].UUID] = v
		}
	}
	return s.Apply(NodeRead{name, read})
}

// UpdateNode applies the function to a copy of the node, and reports the spec and the
// status of the copy.
func (s *State) UpdateNode(name string, change func(*Node)) error {
	n := s.Node(name).clone()
	change(n)
	if err := s.Apply(NodePut{Node: *n}); err != nil {
		return err
	}
	var lost []string
	for i := range n.Devices {
		if n.Devices[i].Lost {
			lost = append(lost, n.Devices[i].UUID)
		}
	}
	return s.Apply(NodeSeen{Name: name, Phase: &n.Phase, Lost: &lost, Artifacts: &n.Artifacts})
}

func (s *State) AddNodes(nodes []*Node) error {
	changes := make([]Change, len(nodes))
	for i, n := range nodes {
		changes[i] = NodePut{Node: *n}
	}
	return s.ApplyAll(changes)
}

// RemoveNode reports the node as gone, and its tasks as on no node.
func (s *State) RemoveNode(name string) error {
	var tasks []*Task
	for _, t := range s.Node(name).Tasks {
		if t.ShadowOf() == nil {
			tasks = append(tasks, t)
		}
	}
	if err := s.Apply(NodeGone{name}); err != nil {
		return err
	}
	for _, t := range tasks {
		if err := s.Apply(TaskSeen{Task: t.Ref()}); err != nil {
			return err
		}
	}
	return nil
}

// ForgetUniform makes estimates and choices examine every device of every node, as if the
// devices of no node were alike.
func (s *State) ForgetUniform() {
	for _, n := range s.fleet.byName {
		n.uniform = false
	}
}

// FindTask is findTask.
func FindTask(tasks []*Task, name string) *Task { return findTask(tasks, name) }
