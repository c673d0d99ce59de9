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
	// If one of them is evicted, so many tasks are at least, unless their job has lost
	// some, and so many thousandths of devices are freed.
	Tasks int
	Freed int64

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
	k, known := nodes[slot]
	if t.elastic() {
		k.elastic += by
	}
	switch k.count += by; {
	case k.count == 0:
		if delete(nodes, slot); len(nodes) == 0 {
			delete(s.classes, c)
		}
		return
	case by < 0:
		if tasks, freed := t.leavesWith(); t.Started >= k.Newest || tasks <= k.Tasks || freed <= k.Freed {
			k.sum(t.Node, t)
		}
	case !known:
		k.Newest = t.Started
		k.Tasks, k.Freed = t.leavesWith()
	default:
		k.add(t)
	}
	nodes[slot] = k
}

// add takes in one more task.
func (k *OnNode) add(t *Task) {
	tasks, freed := t.leavesWith()
	k.Newest, k.Tasks, k.Freed = max(k.Newest, t.Started), min(k.Tasks, tasks), min(k.Freed, freed)
}

// sum takes in the tasks on the node of the same class as the one that leaves, without it.
func (k *OnNode) sum(n *Node, leaves *Task) {
	class, first := leaves.Job.Class(), true
	for _, t := range n.Tasks {
		if t == leaves || t.Job.Class() != class {
			continue
		}
		if first {
			k.Newest, first = t.Started, false
			k.Tasks, k.Freed = t.leavesWith()
			continue
		}
		k.add(t)
	}
}

// maxAlike is up to how many tasks of a job are compared with each other.
const maxAlike = 1024

// leavesWith is how many tasks are evicted with this one, it included, and how much of
// devices they hold at least, in thousandths.
func (t *Task) leavesWith() (tasks int, freed int64) {
	for _, c := range t.Claims {
		freed += int64(c.Milli)
	}
	if t.elastic() {
		return 1, freed
	}
	alt := &t.Job.Alternatives[t.Alternative]
	if len(alt.Tasks) > maxAlike {
		return len(alt.Tasks), freed
	}
	for _, o := range alt.Tasks {
		if o.Shape != t.Shape {
			return len(alt.Tasks), freed
		}
	}
	return len(alt.Tasks), freed * int64(len(alt.Tasks))
}

// elastic reports whether the job may have tasks beyond its minimum.
func (t *Task) elastic() bool {
	if t.shadows != nil || t.Job.Open {
		return true
	}
	alt := &t.Job.Alternatives[t.Alternative]
	return alt.Min < len(alt.Tasks)
}
