package cluster

import "slices"

// Class is what decides first about whether a job may be evicted for another.
type Class struct {
	Queue    string
	Priority int32
}

// Class is the class of the job.
func (j *Job) Class() Class { return Class{j.Queue, j.Priority} }

// OnNode is what runs of one class on one node.
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

// class is what runs of one class, by slot of the node.
type class struct {
	nodes   map[int]OnNode
	elastic int            // nodes on which some job can spare a task
	takings map[taking]int // how many nodes are of each
	byAge   *ages          // nil until it is asked for
}

// taking is what a node has of a class, as far as a victim's cost depends on it.
type taking struct {
	tasks int
	freed int64
}

// set changes what the node has of the class. Nothing is left of it where the count is 0.
func (c *class) set(n *Node, was, now OnNode) {
	if was.count > 0 {
		k := taking{was.Tasks, was.Freed}
		if c.takings[k]--; c.takings[k] == 0 {
			delete(c.takings, k)
		}
		if was.elastic > 0 {
			c.elastic--
		}
	}
	if now.count == 0 {
		delete(c.nodes, n.slot)
		return
	}
	c.takings[taking{now.Tasks, now.Freed}]++
	if now.elastic > 0 {
		c.elastic++
	}
	c.nodes[n.slot] = now
	if c.byAge != nil && (was.count == 0 || was.Newest != now.Newest) {
		c.byAge.push(age{now.Newest, n.Name, n.slot})
	}
}

// Classes visits the classes that preemptible tasks of run, in no order, until visit
// answers false.
func (s *State) Classes(visit func(Class) bool) {
	for c := range s.classes {
		if !visit(c) {
			return
		}
	}
}

// NodesOf visits the slots of the nodes on which preemptible tasks of the class run, in
// no order.
func (s *State) NodesOf(c Class, visit func(slot int, k OnNode)) {
	if in := s.classes[c]; in != nil {
		for slot, k := range in.nodes {
			k.Whole = k.elastic == 0
			visit(slot, k)
		}
	}
}

// RunsOn reports whether preemptible tasks of the class run on the node in the slot.
func (s *State) RunsOn(c Class, slot int) bool {
	in := s.classes[c]
	return in != nil && in.nodes[slot].count > 0
}

// Newest is the node on which the newest task of the class runs, the first by name of
// several, but for nodes that are to be skipped. With it comes what any node has of the
// class at least; Newest is that node's. It reports false where there is no such node.
func (s *State) Newest(c Class, skip func(slot int) bool) (slot int, least OnNode, found bool) {
	in := s.classes[c]
	if in == nil {
		return 0, OnNode{}, false
	}
	if in.byAge == nil || len(in.byAge.heap) > 2*len(in.nodes)+64 {
		in.byAge = &ages{}
		for slot, k := range in.nodes {
			in.byAge.heap = append(in.byAge.heap, age{k.Newest, s.nodes[slot].Name, slot})
		}
		in.byAge.build()
	}
	slot, found = in.byAge.first(func(a age) bool {
		k, known := in.nodes[a.slot]
		return known && k.Newest == a.newest && s.nodes[a.slot].Name == a.name
	}, skip)
	if !found {
		return 0, OnNode{}, false
	}
	first := true
	for k := range in.takings {
		if first {
			least.Tasks, least.Freed, first = k.tasks, k.freed, false
		}
		least.Tasks, least.Freed = min(least.Tasks, k.tasks), min(least.Freed, k.freed)
	}
	least.Newest, least.Whole = in.nodes[slot].Newest, in.elastic == 0
	return slot, least, true
}

// age is a node by the newest task of a class that runs on it.
type age struct {
	newest int64
	name   string
	slot   int
}

func (a *age) before(b *age) bool {
	return a.newest > b.newest || a.newest == b.newest && a.name < b.name
}

// ages is a heap of nodes, the newest first. What does not hold any more is dropped
// when it comes to the top.
type ages struct{ heap []age }

// first is the slot of the first that holds and is not skipped.
func (h *ages) first(holds func(age) bool, skip func(slot int) bool) (slot int, found bool) {
	var skipped []age
	for len(h.heap) > 0 && !found {
		switch top := h.heap[0]; {
		case !holds(top) || slices.Contains(skipped, top):
			h.pop()
		case skip(top.slot):
			skipped = append(skipped, top)
			h.pop()
		default:
			slot, found = top.slot, true
		}
	}
	for _, a := range skipped {
		h.push(a)
	}
	return slot, found
}

func (h *ages) push(a age) {
	h.heap = append(h.heap, a)
	for i := len(h.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.heap[i].before(&h.heap[up]) {
			return
		}
		h.heap[i], h.heap[up] = h.heap[up], h.heap[i]
		i = up
	}
}

func (h *ages) pop() {
	last := len(h.heap) - 1
	h.heap[0] = h.heap[last]
	h.heap = h.heap[:last]
	h.down(0)
}

func (h *ages) build() {
	for i := len(h.heap)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *ages) down(i int) {
	for {
		best := i
		for _, c := range [...]int{2*i + 1, 2*i + 2} {
			if c < len(h.heap) && h.heap[c].before(&h.heap[best]) {
				best = c
			}
		}
		if best == i {
			return
		}
		h.heap[i], h.heap[best] = h.heap[best], h.heap[i]
		i = best
	}
}

// mayBeVictim reports whether the task is listed in its class.
func (t *Task) mayBeVictim() bool { return t.Job.Preemptible && t.Runs() && !t.Node.absent }

// classify lists a task in its class: by +1 once it runs on its node, by -1 before it
// does not any more.
func (s *State) classify(t *Task, by int) {
	if !t.mayBeVictim() {
		return
	}
	c := t.Job.Class()
	in := s.classes[c]
	if in == nil {
		in = &class{nodes: map[int]OnNode{}, takings: map[taking]int{}}
		s.classes[c] = in
	}
	was := in.nodes[t.Node.slot]
	k := was
	if t.elastic() {
		k.elastic += by
	}
	tasks, freed := t.leavesWith()
	switch k.count += by; {
	case k.count == 0:
	case by < 0:
		if t.Started >= k.Newest || tasks <= k.Tasks || freed <= k.Freed {
			k.sum(t)
		}
	case was.count == 0:
		k.Newest, k.Tasks, k.Freed = t.Started, tasks, freed
	default:
		k.add(t.Started, tasks, freed)
	}
	if in.set(t.Node, was, k); len(in.nodes) == 0 {
		delete(s.classes, c)
	}
}

// add takes in one more task.
func (k *OnNode) add(started int64, tasks int, freed int64) {
	k.Newest, k.Tasks, k.Freed = max(k.Newest, started), min(k.Tasks, tasks), min(k.Freed, freed)
}

// sum takes in what runs on the node of the same class as the task, but for the task.
func (k *OnNode) sum(leaves *Task) {
	class, first := leaves.Job.Class(), true
	for _, t := range leaves.Node.Tasks {
		if t == leaves || !t.mayBeVictim() || t.Job.Class() != class {
			continue
		}
		tasks, freed := t.leavesWith()
		if first {
			k.Newest, k.Tasks, k.Freed, first = t.Started, tasks, freed, false
			continue
		}
		k.add(t.Started, tasks, freed)
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
