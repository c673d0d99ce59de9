package cluster

// Class is what decides first about whether a job may be evicted for another.
type Class struct {
	Queue    string
	Priority int32
}

// Class is the class of the job.
func (j *Job) Class() Class { return Class{j.Queue, j.Priority} }

// OnNode is what tasks of one class are on one node.
type OnNode struct {
	Newest int64 // no task of them started later
	// Whole: none of their jobs can spare a task, so that each is evicted as a whole.
	Whole bool

	count, elastic int
}

// Classes visits the classes of the preemptible jobs that have tasks on nodes,
// in no order, until visit answers false. On lists the slots of these nodes, in
// no order either.
func (s *State) Classes(visit func(c Class, on func(func(slot int, k OnNode))) bool) {
	for c, nodes := range s.classes {
		on := func(see func(slot int, k OnNode)) {
			for slot, k := range nodes {
				k.Whole = k.elastic == 0
				see(slot, k)
			}
		}
		if !visit(c, on) {
			return
		}
	}
}

// classify counts a task of a preemptible job on its node: by +1 when it is placed,
// by -1 before it is taken off, by 0 when it started at another time than was known.
func (s *State) classify(t *Task, by int) {
	if t.Node.absent {
		return
	}
	c := t.Job.Class()
	nodes := s.classes[c]
	if nodes == nil {
		nodes = map[int]OnNode{}
		s.classes[c] = nodes
	}
	slot := t.Node.slot
	k := nodes[slot]
	if t.elastic() {
		k.elastic += by
	}
	switch k.count += by; {
	case k.count == 0:
		if delete(nodes, slot); len(nodes) == 0 {
			delete(s.classes, c)
		}
		return
	case by < 0 && t.Started >= k.Newest:
		k.Newest = newestOf(t.Node, t)
	case by >= 0:
		k.Newest = max(k.Newest, t.Started)
	}
	nodes[slot] = k
}

// elastic reports whether the job may have tasks beyond its minimum.
func (t *Task) elastic() bool {
	if t.shadows != nil || t.Job.Open {
		return true
	}
	alt := &t.Job.Alternatives[t.Alternative]
	return alt.Min < len(alt.Tasks)
}

// newestOf is when the newest of the tasks on the node started that are of the same
// class as the one that leaves.
func newestOf(n *Node, leaves *Task) int64 {
	newest, class := int64(0), leaves.Job.Class()
	for _, t := range n.Tasks {
		if t != leaves && t.Job.Class() == class {
			newest = max(newest, t.Started)
		}
	}
	return newest
}
