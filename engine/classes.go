package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// maxOpened is how many nodes of a class are opened one by one, before all of them
// enter the heap.
const maxOpened = 64

// enter adds the classes that might have victims. As long as no node of a class is
// opened, one entry stands for all of them: what the cheapest of them costs at least.
// Where the order of nodes is not by age, as with moves, all nodes enter at once.
func (h *nodeHeap) enter(w *nodewise) {
	var classes []cluster.Class
	w.exits.might.visit(w.view.Classes(), func(c cluster.Class) bool {
		classes = append(classes, c)
		return true
	})
	entries := make([]entryPlan, len(classes))
	for i := range classes {
		if w.exits.way&moving != 0 || h.in != nil {
			h.addAllNodes(w, classes[i])
		} else if e := &entries[i]; h.representRest(w, e, &classes[i]) {
			h.entries.Append(e)
		}
	}
	h.entries.Init()
}

// open brings the node that the class comes to next into the heap, with the bound that
// its tasks give.
func (h *nodeHeap) open(w *nodewise, t *cluster.Task, e *entryPlan, ask verdict) {
	if e.opened++; e.opened > maxOpened {
		h.addAllNodes(w, *e.class)
		return
	}
	if !h.seen(e.slot) {
		h.refine(w, t, e.slot, ask)
	}
	if h.representRest(w, e, e.class) { // it comes back with the bound of the nodes that are not opened
		h.entries.Push(e)
	}
}

// stand has the entry stand for the nodes of the class that are not opened. It reports
// whether there are any.
func (h *nodeHeap) representRest(w *nodewise, e *entryPlan, c *cluster.Class) bool {
	slot, least, found := w.view.Classes().Newest(*c, h.seen)
	if found {
		e.slot, e.class, e.cost = slot, c, h.leastCost(w, *c, &least)
	}
	return found
}

// seen reports whether the node is or was in the heap.
func (h *nodeHeap) seen(slot int) bool {
	_, seen := h.current[slot]
	return seen
}

// least is what it costs at least to evict one of these. Classes do not know what
// plugins say of their tasks, which may be 0.
func (h *nodeHeap) leastCost(w *nodewise, c cluster.Class, k *cluster.OnNode) cost {
	out := cost{tier: strength(tierOf(w.view, c.Queue)), priority: c.Priority, tasks: int32(k.Tasks), beyond: max(0, k.Freed-h.need), young: min(0, -k.Newest)}
	if k.Whole {
		out.jobs = 1
	}
	return out
}

// flood brings all nodes of the class into the heap.
func (h *nodeHeap) addAllNodes(w *nodewise, c cluster.Class) {
	var fresh []entryPlan
	w.view.Classes().Nodes(c, func(slot int, k cluster.OnNode) {
		if n := w.view.At(slot); h.in != nil && !h.in.has(n) || !h.enough(n) {
			return
		}
		bound := noCost() // perhaps nothing is evicted
		if bound.moved.tasks = 1; w.exits.way&moving == 0 {
			bound = h.leastCost(w, c, &k)
		}
		if e, seen := h.current[slot]; seen {
			if e == nil || !e.rough {
				return
			}
			bound.lower(&e.cost)
		}
		fresh = append(fresh, entryPlan{slot: slot, rough: true, cost: bound})
	})
	for i := range fresh {
		h.current[fresh[i].slot] = &fresh[i]
		h.entries.Append(&fresh[i])
	}
	h.entries.Init()
}

// enough reports whether the node would have as much of devices as the shape requests
// at least, if all left it that may.
func (h *nodeHeap) enough(n *cluster.Node) bool {
	return n.Leavable() >= h.need || n.Leavable()+idleOn(n) >= h.need
}

// lower makes the cost a bound of both.
func (c *cost) lower(o *cost) {
	if o.compareEvicted(c) < 0 {
		c.tier, c.priority = o.tier, o.priority
	}
	c.victims = min(c.victims, o.victims)
	c.beyond, c.tasks, c.jobs, c.young = min(c.beyond, o.beyond), min(c.tasks, o.tasks), min(c.jobs, o.jobs), min(c.young, o.young)
}

// check fails the session where a node was left out that has victims.
func (h *nodeHeap) check(w *nodewise, t *cluster.Task, ask verdict) {
	every, any := *w, *w.exits
	every.exits, any.might = &any, nil // every task is asked about
	w.view.Recent().Nodes(0, func(slot int) {
		if h.bound(&every, t, slot, ask) != nil && !slices.ContainsFunc(h.entries.Items, func(e *entryPlan) bool {
			return e.slot == slot || e.class != nil && w.view.Classes().RunOn(*e.class, slot)
		}) {
			w.fault.fail("engine", "node %s has room for task %s if others are evicted, and none of their classes might be", w.view.At(slot).Name, t.ID)
		}
	})
}
