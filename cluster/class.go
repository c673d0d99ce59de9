package cluster

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-project/berth/internal/heap"
)

// Class is the queue and the priority of a job. Plugins decide by class whether any
// job of it may be a victim, before they look at single jobs.
type Class struct {
	Queue    string
	Priority int32
}

// Class returns the class of the job: its queue and its priority.
func (j *Job) Class() Class { return Class{j.Queue, j.Priority} }

// ClassOnNode is a summary of the running preemptible tasks of one class on one node. It
// bounds the cost of evicting one of them from below.
type ClassOnNode struct {
	Newest int64 // when the newest of the tasks was started, in nanoseconds
	// Whole is true if no job of the tasks has surplus tasks, so that each of the jobs
	// can only be evicted as a whole.
	Whole bool
	Freed int64 // the least that one of the tasks holds, in thousandths of devices; 0 if a task holds a lost device
}

// class has the running tasks of one class.
type class struct {
	Class
	nodes  map[int]*classNode    // by slot of the node
	byAge  heap.Heap[*classNode] // the node with the newest task first
	bounds map[evictionBound]int // how many nodes have each bound
	lowest evictionBound         // holds on all nodes: the lowest of each figure
}

// classNode summarizes the running tasks of a class on one node.
type classNode struct {
	slot    int
	name    string // of the node
	newest  int64
	count   int // tasks
	elastic int // tasks of jobs that may have surplus tasks
	evictionBound
	heapIndex int // index in class.byAge
}

// evictionBound bounds from below what is evicted if a task of the class on a node is
// evicted. See ClassOnNode.
type evictionBound struct {
	whole bool
	freed int64
}

// classes has the tasks of preemptible jobs that are on nodes.
type classes struct {
	byQueue     map[string][]*class // of the tasks that run; sorted by priority, lowest first
	preemptible int                 // how many tasks are on nodes, in any status
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

// before orders nodes by their newest task, newest first, and then by name.
func (r *classNode) before(o *classNode) bool {
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

// find returns the class, or nil if no task of it runs.
func (k *classes) find(c Class) *class {
	list := k.byQueue[c.Queue]
	if at, found := placeIn(list, c); found {
		return list[at]
	}
	return nil
}

// at returns the index of the class in the list of its queue, and whether it is there.
// If it is not, the index is where it is to be inserted.
func (k *classes) at(c Class) (int, bool) {
	return placeIn(k.byQueue[c.Queue], c)
}

// placeIn returns the index of the class in the list, which is sorted by priority, and whether
// it is there.
func placeIn(list []*class, c Class) (int, bool) {
	return slices.BinarySearchFunc(list, c, func(in *class, c Class) int { return cmp.Compare(in.Priority, c.Priority) })
}

// RunOn is Classes.RunOn.
func (k *classes) RunOn(c Class, slot int) bool {
	in := k.find(c)
	return in != nil && in.nodes[slot] != nil
}

// Newest is Classes.Newest.
func (k *classes) Newest(c Class, skip func(slot int) bool) (slot int, least ClassOnNode, found bool) {
	in := k.find(c)
	if in == nil {
		return 0, ClassOnNode{}, false
	}
	newest := in.newestNode(skip)
	if newest == nil {
		return 0, ClassOnNode{}, false
	}
	return newest.slot, ClassOnNode{newest.newest, in.lowest.whole, in.lowest.freed}, true
}

// Least is Classes.Least.
func (k *classes) Least(c Class) int64 {
	if in := k.find(c); in != nil {
		return in.lowest.freed
	}
	return 0
}

// newestNode returns the node with the newest task among those that are not skipped,
// or nil. It walks down the heap: below a node that is skipped, both children are
// candidates.
func (c *class) newestNode(skip func(slot int) bool) *classNode {
	if r := c.byAge.Items[0]; !skip(r.slot) {
		return r // the usual case, which needs no list
	}
	next := []*classNode{c.byAge.Items[0]}
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
		for _, below := range [...]int{2*r.heapIndex + 1, 2*r.heapIndex + 2} {
			if below < len(c.byAge.Items) {
				next = append(next, c.byAge.Items[below])
			}
		}
	}
	return nil
}

// newByAge returns an empty heap of nodes, the newest first. The heap keeps heapIndex
// of the nodes up to date.
func newByAge() heap.Heap[*classNode] {
	return heap.Heap[*classNode]{Before: (*classNode).before, Moved: func(r *classNode, index int) { r.heapIndex = index }}
}

// countBound adds by to the number of nodes that have the bound, and updates lowest.
func (c *class) countBound(b evictionBound, by int) {
	switch c.bounds[b] += by; c.bounds[b] {
	case 0:
		delete(c.bounds, b)
		c.lowest = lowestOf(c.bounds)
	case by: // the first node with this bound
		if len(c.bounds) == 1 {
			c.lowest = b
		}
		c.lowest = c.lowest.lower(b)
	}
}

// lowestOf returns the bound that holds on all nodes.
func lowestOf(bounds map[evictionBound]int) (lowest evictionBound) {
	first := true
	for b := range bounds {
		if first {
			lowest, first = b, false
		}
		lowest = lowest.lower(b)
	}
	return lowest
}

// lower returns the lower of the two bounds, figure by figure.
func (b evictionBound) lower(o evictionBound) evictionBound {
	return evictionBound{b.whole && o.whole, min(b.freed, o.freed)}
}

func (c *class) clone() *class {
	out := &class{Class: c.Class, nodes: make(map[int]*classNode, len(c.nodes)), byAge: newByAge(), bounds: maps.Clone(c.bounds), lowest: c.lowest}
	out.byAge.Items = make([]*classNode, len(c.byAge.Items))
	copies := make([]classNode, len(c.byAge.Items))
	for i, r := range c.byAge.Items {
		copies[i] = *r
		out.byAge.Items[i], out.nodes[r.slot] = &copies[i], &copies[i]
	}
	return out
}

// mayBeVictim reports whether the task is listed in its class: its job is preemptible,
// it runs, and its node is known.
func (t *Task) mayBeVictim() bool { return t.Job.Preemptible && t.Runs() && !t.Node.absent }

// list adds the task to its class (by +1) or removes it (-1), if the task may be a
// victim. It is called with -1 before the status of the task changes, and with +1
// after it has changed.
func (k *classes) list(t *Task, by int) {
	if !t.mayBeVictim() {
		return
	}
	t.Node.preemptibleMilli += int64(by) * t.milli()
	name := t.Job.Class()
	c := k.find(name)
	if c == nil {
		c = &class{Class: name, nodes: map[int]*classNode{}, byAge: newByAge(), bounds: map[evictionBound]int{}}
		at, _ := k.at(name)
		k.byQueue[name.Queue] = slices.Insert(k.byQueue[name.Queue], at, c)
	}
	r := c.nodes[t.Node.Slot()]
	first := r == nil
	if first {
		r = &classNode{slot: t.Node.Slot(), name: t.Node.Name}
		c.nodes[r.slot] = r
	}
	was, newest := r.evictionBound, r.newest
	if r.count += by; t.elastic() {
		r.elastic += by
	}
	switch {
	case r.count == 0:
		delete(c.nodes, r.slot)
		c.byAge.Remove(r.heapIndex)
		if c.countBound(was, -1); len(c.nodes) == 0 {
			k.drop(name)
		}
		return
	case by > 0:
		r.add(t, first)
	default:
		r.recompute(t)
	}
	if r.whole = r.elastic == 0; first {
		c.countBound(r.evictionBound, +1)
		c.byAge.Push(r)
		return
	}
	if r.evictionBound != was {
		c.countBound(r.evictionBound, +1)
		c.countBound(was, -1)
	}
	if r.newest != newest {
		c.byAge.Fix(r.heapIndex)
	}
}

// drop removes a class of which no task runs any more.
func (k *classes) drop(c Class) {
	at, _ := k.at(c)
	if k.byQueue[c.Queue] = slices.Delete(k.byQueue[c.Queue], at, at+1); len(k.byQueue[c.Queue]) == 0 {
		delete(k.byQueue, c.Queue)
	}
}

// add includes one more task in the summary. first is true for the first task.
func (r *classNode) add(t *Task, first bool) {
	if first {
		r.newest, r.freed = t.Started, t.milliUnlessLost()
		return
	}
	r.newest, r.freed = max(r.newest, t.Started), min(r.freed, t.milliUnlessLost())
}

// recompute summarizes the tasks of the class on the node anew, without the task that
// is removed.
func (r *classNode) recompute(removed *Task) {
	class, first := removed.Job.Class(), true
	for _, t := range removed.Node.Tasks {
		if t != removed && t.mayBeVictim() && t.Job.Class() == class {
			r.add(t, first)
			first = false
		}
	}
}

// milli returns how much the task holds, in thousandths of devices.
func (t *Task) milli() int64 {
	sum := int64(0)
	for _, c := range t.Claims {
		sum += int64(c.Milli)
	}
	return sum
}

// milliUnlessLost is milli, or 0 if one of the task's devices is lost.
func (t *Task) milliUnlessLost() int64 {
	if slices.ContainsFunc(t.Claims, func(c Claim) bool { return t.Node.Devices[c.Device].Lost }) {
		return 0
	}
	return t.milli()
}

// PreemptibleMilli returns how much of the node's devices running preemptible tasks hold,
// in thousandths of devices: the most that evictions can free.
func (n *Node) PreemptibleMilli() int64 { return n.preemptibleMilli }

// elastic reports whether the job of the task may have surplus tasks, so that the task
// may be evicted alone.
func (t *Task) elastic() bool {
	if t.ShadowOf() != nil || t.Job.Open {
		return true
	}
	alt := &t.Job.Alternatives[t.Alternative]
	return alt.Min < len(alt.Tasks)
}
