package cluster

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-project/berth/internal/heap"
)

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
}

// class is what runs of one class.
type class struct {
	Class
	nodes   map[int]*running // by slot
	byAge   heap.Heap[*running]
	takings map[taking]int // how many nodes are of each
	least   taking         // of these
}

// running is what runs of a class on one node.
type running struct {
	slot           int
	name           string // of the node
	newest         int64
	count, elastic int // tasks; of jobs that can spare one
	taking
	place int // in the heap
}

// taking is what a victim of the class takes at least on a node.
type taking struct {
	whole bool
	tasks int
	freed int64
	each  int64 // thousandths of devices that a task holds at least; 0: one of them is lost
}

// classes are the tasks of preemptible jobs that are on nodes.
type classes struct {
	byQueue     map[string][]*class // the lowest priority first: what runs
	preemptible int                 // tasks, however they stand there
}

func (k *classes) clone() classes {
	c := classes{make(map[string][]*class, len(k.byQueue)), k.preemptible}
	for queue, list := range k.byQueue {
		for _, in := range list {
			c.byQueue[queue] = append(c.byQueue[queue], in.clone())
		}
	}
	return c
}

func (r *running) onNode() OnNode { return OnNode{r.newest, r.whole, r.tasks, r.freed} }

// before orders nodes by age, the newest first, then by name.
func (r *running) before(o *running) bool {
	return r.newest > o.newest || r.newest == o.newest && r.name < o.name
}

// Visit is Classes.Visit.
func (k *classes) Visit(visit func(Class) bool) {
	for queue := range k.byQueue {
		if !k.VisitQueue(queue, visit) {
			return
		}
	}
}

// VisitQueue is Classes.VisitQueue.
func (k *classes) VisitQueue(queue string, visit func(Class) bool) bool {
	for _, c := range k.byQueue[queue] {
		if !visit(c.Class) {
			return false
		}
	}
	return true
}

// Lowest is Classes.Lowest.
func (k *classes) Lowest(queue string) (priority int32, found bool) {
	list := k.byQueue[queue]
	if len(list) == 0 {
		return 0, false
	}
	return list[0].Priority, true
}

// find finds the class; nil where nothing of it runs.
func (k *classes) find(c Class) *class {
	if at, found := k.at(c); found {
		return k.byQueue[c.Queue][at]
	}
	return nil
}

// at is the place of the class among those of its queue, or where it belongs.
func (k *classes) at(c Class) (int, bool) {
	return slices.BinarySearchFunc(k.byQueue[c.Queue], c, func(in *class, c Class) int { return cmp.Compare(in.Priority, c.Priority) })
}

// Nodes is Classes.Nodes.
func (k *classes) Nodes(c Class, visit func(slot int, k OnNode)) {
	if in := k.find(c); in != nil {
		for _, r := range in.byAge.Items {
			visit(r.slot, r.onNode())
		}
	}
}

// RunOn is Classes.RunOn.
func (k *classes) RunOn(c Class, slot int) bool {
	in := k.find(c)
	return in != nil && in.nodes[slot] != nil
}

// Newest is Classes.Newest.
func (k *classes) Newest(c Class, skip func(slot int) bool) (slot int, least OnNode, found bool) {
	in := k.find(c)
	if in == nil {
		return 0, OnNode{}, false
	}
	first := in.first(skip)
	if first == nil {
		return 0, OnNode{}, false
	}
	return first.slot, OnNode{first.newest, in.least.whole, in.least.tasks, in.least.freed}, true
}

// Least is Classes.Least.
func (k *classes) Least(c Class) int64 {
	if in := k.find(c); in != nil {
		return in.least.each
	}
	return 0
}

// first is the first by age that is not to be skipped. Those that may come next are the
// ones below nodes that are skipped.
func (c *class) first(skip func(slot int) bool) *running {
	if r := c.byAge.Items[0]; !skip(r.slot) {
		return r // so it is at first
	}
	next := []*running{c.byAge.Items[0]}
	for len(next) > 0 {
		best := 0
		for i, r := range next {
			if r.before(next[best]) {
				best = i
			}
		}
		r := next[best]
		if !skip(r.slot) {
			return r
		}
		next = slices.Delete(next, best, best+1)
		for _, below := range [...]int{2*r.place + 1, 2*r.place + 2} {
			if below < len(c.byAge.Items) {
				next = append(next, c.byAge.Items[below])
			}
		}
	}
	return nil
}

// newByAge is an empty heap of nodes, the newest first, each of which knows its place.
func newByAge() heap.Heap[*running] {
	return heap.Heap[*running]{Before: (*running).before, Moved: func(r *running, place int) { r.place = place }}
}

// count counts nodes that are of the kind.
func (c *class) count(k taking, by int) {
	switch c.takings[k] += by; c.takings[k] {
	case 0:
		delete(c.takings, k)
		c.least = leastOf(c.takings)
	case by: // the first
		if len(c.takings) == 1 {
			c.least = k
		}
		c.least = c.least.and(k)
	}
}

// leastOf is what a victim takes at least on any of the nodes.
func leastOf(takings map[taking]int) (least taking) {
	first := true
	for k := range takings {
		if first {
			least, first = k, false
		}
		least = least.and(k)
	}
	return least
}

// and is what a victim takes at least on nodes of either kind.
func (k taking) and(o taking) taking {
	return taking{k.whole && o.whole, min(k.tasks, o.tasks), min(k.freed, o.freed), min(k.each, o.each)}
}

func (c *class) clone() *class {
	out := &class{Class: c.Class, nodes: make(map[int]*running, len(c.nodes)), byAge: newByAge(), takings: maps.Clone(c.takings), least: c.least}
	out.byAge.Items = make([]*running, len(c.byAge.Items))
	parts := make([]running, len(c.byAge.Items))
	for i, r := range c.byAge.Items {
		parts[i] = *r
		out.byAge.Items[i], out.nodes[r.slot] = &parts[i], &parts[i]
	}
	return out
}

// mayBeVictim reports whether the task is listed in its class.
func (t *Task) mayBeVictim() bool { return t.Job.Preemptible && t.Runs() && !t.Node.absent }

// list lists a task in its class: by +1 once it runs on its node, by -1 before it
// does not any more.
func (k *classes) list(t *Task, by int) {
	if !t.mayBeVictim() {
		return
	}
	t.Node.leavable += int64(by) * t.milli()
	name := t.Job.Class()
	c := k.find(name)
	if c == nil {
		c = &class{Class: name, nodes: map[int]*running{}, byAge: newByAge(), takings: map[taking]int{}}
		at, _ := k.at(name)
		k.byQueue[name.Queue] = slices.Insert(k.byQueue[name.Queue], at, c)
	}
	r := c.nodes[t.Node.slot]
	first := r == nil
	if first {
		r = &running{slot: t.Node.slot, name: t.Node.Name}
		c.nodes[r.slot] = r
	}
	was, newest := r.taking, r.newest
	if r.count += by; t.elastic() {
		r.elastic += by
	}
	switch {
	case r.count == 0:
		delete(c.nodes, r.slot)
		c.byAge.Remove(r.place)
		if c.count(was, -1); len(c.nodes) == 0 {
			k.drop(name)
		}
		return
	case by > 0:
		r.add(t, first)
	default:
		r.sum(t)
	}
	if r.whole = r.elastic == 0; first {
		c.count(r.taking, +1)
		c.byAge.Push(r)
		return
	}
	if r.taking != was {
		c.count(r.taking, +1)
		c.count(was, -1)
	}
	if r.newest != newest {
		c.byAge.Fix(r.place)
	}
}

// drop forgets a class of which nothing runs any more.
func (k *classes) drop(c Class) {
	at, _ := k.at(c)
	if k.byQueue[c.Queue] = slices.Delete(k.byQueue[c.Queue], at, at+1); len(k.byQueue[c.Queue]) == 0 {
		delete(k.byQueue, c.Queue)
	}
}

// add takes in one more task, which may be the first.
func (r *running) add(t *Task, first bool) {
	tasks, freed := t.leavesWith()
	if first {
		r.newest, r.tasks, r.freed, r.each = t.Started, tasks, freed, t.present()
		return
	}
	r.newest, r.tasks, r.freed, r.each = max(r.newest, t.Started), min(r.tasks, tasks), min(r.freed, freed), min(r.each, t.present())
}

// sum takes in what runs on the node of the same class as the task, but for the task.
func (r *running) sum(leaves *Task) {
	class, first := leaves.Job.Class(), true
	for _, t := range leaves.Node.Tasks {
		if t != leaves && t.mayBeVictim() && t.Job.Class() == class {
			r.add(t, first)
			first = false
		}
	}
}

// leavesWith is how many tasks are evicted with this one, it included, and how much of
// devices they hold at least, in thousandths.
func (t *Task) leavesWith() (tasks int, freed int64) {
	freed = t.milli()
	if t.elastic() {
		return 1, freed
	}
	alt := &t.Job.Alternatives[t.Alternative]
	if !t.alike {
		return len(alt.Tasks), freed
	}
	return len(alt.Tasks), freed * int64(len(alt.Tasks))
}

// milli is how much the task holds of devices, in thousandths.
func (t *Task) milli() int64 {
	sum := int64(0)
	for _, c := range t.Claims {
		sum += int64(c.Milli)
	}
	return sum
}

// present is milli, or 0 where the task holds a device that is lost.
func (t *Task) present() int64 {
	if slices.ContainsFunc(t.Claims, func(c Claim) bool { return t.Node.Devices[c.Device].Lost }) {
		return 0
	}
	return t.milli()
}

// Leavable is how much of the node's devices preemptible tasks hold which run, in
// thousandths.
func (n *Node) Leavable() int64 { return n.leavable }

// elastic reports whether the job may have tasks beyond its minimum.
func (t *Task) elastic() bool {
	if t.shadows != nil || t.Job.Open {
		return true
	}
	alt := &t.Job.Alternatives[t.Alternative]
	return alt.Min < len(alt.Tasks)
}
