package cluster

// Class is what decides first about whether a job may be evicted for another.
type Class struct {
	Queue    string
	Priority int32
}

// Class is the class of the job.
func (j *Job) Class() Class { return Class{j.Queue, j.Priority} }

// Classes visits the classes of the preemptible jobs that have tasks on nodes,
// in no order, until visit answers false. On lists the slots of these nodes, in
// no order either.
func (s *State) Classes(visit func(c Class, on func(func(slot int))) bool) {
	for c, nodes := range s.classes {
		on := func(see func(slot int)) {
			for slot := range nodes {
				see(slot)
			}
		}
		if !visit(c, on) {
			return
		}
	}
}

// classify counts a task of a preemptible job on its node: by +1 when it is placed,
// by -1 before it is taken off.
func (s *State) classify(t *Task, by int) {
	if t.Node.absent {
		return
	}
	c := t.Job.Class()
	nodes := s.classes[c]
	if nodes == nil {
		nodes = map[int]int{}
		s.classes[c] = nodes
	}
	slot := t.Node.slot
	if nodes[slot] += by; nodes[slot] != 0 {
		return
	}
	if delete(nodes, slot); len(nodes) == 0 {
		delete(s.classes, c)
	}
}
