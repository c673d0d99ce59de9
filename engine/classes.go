package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// maxOpened is how many nodes of a class are added to the heap one by one. After that, all
// of them are added at once.
const maxOpened = 64

// enter adds the given classes. One entry represents all nodes of a class that are not in the
// heap themselves, with a lower bound of the cheapest of them. A class lists its nodes by the
// age of their tasks. If that is not the order of their costs, as with moves, or if the scope
// is limited, all nodes are added at once.
func (h *nodeHeap) enter(w *nodewise, from *narrowed) {
	var classes []cluster.Class
	from.visit(w.view.Classes(), func(c cluster.Class) bool {
		classes = append(classes, c)
		return true
	})
	entries := make([]heapNode, len(classes))
	for i := range classes {
		if w.ways.way&moving != 0 || h.in != nil {
			h.addAllNodes(w, classes[i], h.entries.Append)
		} else if e := &entries[i]; h.representRest(w, e, &classes[i]) {
			h.entries.Append(e)
		}
	}
	h.entries.Init()
}

// open adds the next node of the entry's class to the heap, with a bound that is computed
// from the tasks on the node.
func (h *nodeHeap) open(w *nodewise, t *cluster.Task, e *heapNode, ask verdict) {
	if e.opened++; e.opened > maxOpened {
		h.addAllNodes(w, *e.class, h.entries.Push)
		return
	}
	if !h.seen(e.slot) {
		h.refine(w, t, e.slot, ask)
	}
	if h.representRest(w, e, e.class) {
		h.entries.Push(e)
	}
}

// representRest makes the entry represent the nodes of the class that are not in the heap.
// It reports whether there are any.
func (h *nodeHeap) representRest(w *nodewise, e *heapNode, c *cluster.Class) bool {
	slot, least, found := w.view.Classes().Newest(*c, h.seen)
	if found {
		e.slot, e.class, e.cost = slot, c, h.leastCost(w, *c, &least)
	}
	return found
}

// seen reports whether the node in the slot is or was in the heap.
func (h *nodeHeap) seen(slot int) bool {
	_, seen := h.current[slot]
	return seen
}

// leastCost returns a lower bound of the cost of evicting a task of the class from a node.
// The answers of VictimCost hooks are not known for classes and count as 0, their minimum.
func (h *nodeHeap) leastCost(w *nodewise, c cluster.Class, k *cluster.ClassOnNode) cost {
	out := cost{tier: strength(tierOf(w.view, c.Queue)), priority: c.Priority, tasks: int32(k.Tasks), beyond: max(0, k.Freed-h.need), young: min(0, -k.Newest)}
	if k.Whole {
		out.jobs = 1
	}
	return out
}

// addAllNodes adds all nodes of the class to the heap with the given function.
func (h *nodeHeap) addAllNodes(w *nodewise, c cluster.Class, add func(*heapNode)) {
	var fresh []heapNode
	w.view.Classes().Nodes(c, func(slot int, k cluster.ClassOnNode) {
		if n := w.view.At(slot); h.in != nil && !h.in.has(n) || !h.enough(n) {
			return
		}
		bound := noCost() // a plan may consist of moves alone
		if bound.moved.tasks = 1; w.ways.way&moving == 0 {
			bound = h.leastCost(w, c, &k)
		}
		if e, seen := h.current[slot]; seen {
			if e == nil || !e.rough {
				return
			}
			bound.lower(&e.cost)
		}
		fresh = append(fresh, heapNode{slot: slot, rough: true, cost: bound})
	})
	for i := range fresh {
		h.current[fresh[i].slot] = &fresh[i]
		add(&fresh[i])
	}
}

// enough reports whether the node would have as much of devices free as the shape requests
// at least, if all preemptible tasks were evicted from it.
func (h *nodeHeap) enough(n *cluster.Node) bool {
	return n.PreemptibleMilli() >= h.need || n.PreemptibleMilli()+idleOn(n) >= h.need
}

// lower lowers the cost until it is a lower bound of both costs.
func (c *cost) lower(o *cost) {
	if o.compareEvicted(c) < 0 {
		c.tier, c.priority = o.tier, o.priority
	}
	c.victims = min(c.victims, o.victims)
	c.beyond, c.tasks, c.jobs, c.young = min(c.beyond, o.beyond), min(c.tasks, o.tasks), min(c.jobs, o.jobs), min(c.young, o.young)
}

// check fails the session if a node has victims and is neither in the heap nor represented
// by a class. While the heap has only the classes that may have a first victim, it does so
// only for nodes with a task that may be a first victim. Twin sessions use it to check the
// NarrowVictims, NarrowQueues and NarrowFirst hooks.
func (h *nodeHeap) check(w *nodewise, t *cluster.Task, ask verdict) {
	every, any := *w, *w.ways
	every.ways, any.might = &any, nil // the hooks are called for every task
	w.view.Recent().Nodes(0, func(slot int) {
		if h.seen(slot) || slices.ContainsFunc(h.entries.Items, func(e *heapNode) bool {
			return e.slot == slot || e.class != nil && w.view.Classes().RunOn(*e.class, slot)
		}) || h.bound(&every, t, slot, ask) == nil {
			return
		}
		n := w.view.At(slot)
		if h.firstOnly && !slices.ContainsFunc(n.Tasks, w.ways.mayBeFirst) {
			return
		}
		w.fault.fail("engine", "node %s has room for task %s if other tasks are evicted, and NarrowVictims, NarrowQueues or NarrowFirst excluded the classes of all of them", n.Name, t.ID)
	})
}
