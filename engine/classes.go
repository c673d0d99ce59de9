package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// enter adds the classes that may have victims or, if firstOnly is set, those that may have
// the first victim. One entry represents all nodes of a class that are not in the heap
// themselves, with a lower bound of the cheapest of them.
func (h *nodeHeap) enter(w *nodewise, t *cluster.Task) {
	if w.evicted {
		h.enteredFor = w.want
	}
	if w.ways.way&moving != 0 || h.in != nil || h.surveyed != nil || w.heaps.wide[t.Shape] {
		h.survey(w, t)
		return
	}
	h.classes(w).visit(w.view.Classes(), func(c cluster.Class) bool {
		if e := w.heaps.node(); h.representRest(w, e, c) {
			h.entries.Append(e)
		}
		return true
	})
	h.entries.Init()
}

// classes returns the classes that are entered; nil means any.
func (h *nodeHeap) classes(w *nodewise) *narrowed {
	if h.firstOnly {
		return w.ways.firsts
	}
	return w.ways.might
}

// open adds the next node of the entry's class to the heap, with a bound that is computed
// from the tasks on the node. If many nodes were added in this way, it surveys all nodes
// instead. Twin sessions survey sooner, to check the survey.
func (h *nodeHeap) open(w *nodewise, t *cluster.Task, e *heapNode, ask verdict) {
	most := maxOpened(w.view.Recent().Slots())
	if w.finder.search == Twin {
		most = 1
	}
	if h.opened++; h.opened > most {
		if w.heaps.wide == nil {
			w.heaps.wide = map[*cluster.Shape]bool{}
		}
		w.heaps.wide[t.Shape] = true
		if h.survey(w, t); w.finder.search == Twin {
			h.check(w, t, ask)
		}
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
func (h *nodeHeap) representRest(w *nodewise, e *heapNode, c cluster.Class) bool {
	slot, least, found := w.view.Classes().Newest(c, h.seen)
	if found {
		e.slot, e.ofClass, e.class, e.cost = slot, true, c, h.leastCost(w, c, &least)
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
	out := cost{tier: strength(tierOf(w.view, c.Queue)), priority: c.Priority, tasks: 1, beyond: max(0, k.Freed-h.need), young: min(0, -k.Newest)}
	if k.Whole {
		out.jobs = 1
	}
	return out
}

// enough reports whether the node would have as much of devices free as the shape requests
// at least, if all preemptible tasks were evicted from it.
func (h *nodeHeap) enough(n *cluster.Node) bool {
	return n.PreemptibleMilli() >= h.need || n.PreemptibleMilli()+idleOn(n) >= h.need
}

// check fails the session if a node has victims and is neither in the heap nor represented
// by a class or a survey. While the heap has only the classes that may have a first victim, it does so
// only for nodes with a task that may be a first victim. Twin sessions use it to check the
// NarrowVictims, NarrowQueues and NarrowFirst hooks.
func (h *nodeHeap) check(w *nodewise, t *cluster.Task, ask verdict) {
	every, any := *w, *w.ways
	every.ways, any.might = &any, nil // the hooks are called for every task
	surveyed := func(int) bool { return false }
	if h.surveyed != nil && h.surveyed.more { // another survey would list the node
		bound := newSummaryBound(w, t.Shape, h.need, h.classes(w))
		surveyed = func(slot int) bool {
			_, listed := bound.of(w.heaps.occupancies.of(slot))
			return listed
		}
	} else if h.surveyed != nil {
		surveyed = func(slot int) bool {
			return slices.ContainsFunc(h.surveyed.nodes, func(n surveyedNode) bool { return int(n.slot) == slot })
		}
	}
	w.view.Recent().Nodes(0, func(slot int) {
		if h.seen(slot) || surveyed(slot) || slices.ContainsFunc(h.entries.Items, func(e *heapNode) bool {
			return e.slot == slot || e.ofClass && w.view.Classes().RunOn(e.class, slot)
		}) || h.bound(&every, t, slot, ask) == nil {
			return
		}
		n := w.view.At(slot)
		if h.firstOnly && !slices.ContainsFunc(n.Tasks, w.ways.mayBeFirst) {
			return
		}
		w.fault.fail("engine", "node %s has room for task %s if other tasks are evicted, and NarrowVictims, NarrowQueues or NarrowFirst excluded the classes of all of them", n.Name, t.ID)
	})
	h.checkSummaries(w, t, ask)
}
