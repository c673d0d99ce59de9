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
func (h *heap) enter(r *room) {
	var classes []cluster.Class
	r.State.Classes(func(c cluster.Class) bool {
		if r.class == nil || r.class(c) {
			classes = append(classes, c)
		}
		return true
	})
	entries := make([]entryPlan, len(classes))
	for i := range classes {
		if r.way&moving != 0 || h.in != nil {
			h.flood(r, classes[i])
		} else if e := &entries[i]; h.stand(r, e, &classes[i]) {
			h.entries = append(h.entries, e)
		}
	}
	h.order(r)
}

// open brings the node that the class comes to next into the heap, with the bound that
// its tasks give.
func (h *heap) open(r *room, t *cluster.Task, e *entryPlan, ask verdict) {
	if e.opened++; e.opened > maxOpened {
		h.flood(r, *e.class)
		return
	}
	if !h.seen(e.slot) {
		h.refine(r, t, e.slot, ask)
	}
	h.next(r, e)
}

// next puts the class back with the bound of the nodes that are not opened.
func (h *heap) next(r *room, e *entryPlan) {
	if h.stand(r, e, e.class) {
		h.push(r, e)
	}
}

// stand has the entry stand for the nodes of the class that are not opened. It reports
// whether there are any.
func (h *heap) stand(r *room, e *entryPlan, c *cluster.Class) bool {
	slot, least, found := r.State.Newest(*c, h.seen)
	if found {
		e.slot, e.class, e.cost = slot, c, h.least(r, *c, &least)
	}
	return found
}

// seen reports whether the node is or was in the heap.
func (h *heap) seen(slot int) bool {
	_, seen := h.current[slot]
	return seen
}

// least is what it costs at least to evict one of these.
func (h *heap) least(r *room, c cluster.Class, k *cluster.OnNode) cost {
	out := cost{tier: strength(tierOf(r.State, c.Queue)), priority: c.Priority, tasks: int32(k.Tasks), beyond: max(0, k.Freed-h.need), young: min(0, -k.Newest)}
	if k.Whole {
		out.jobs = 1
	}
	return out
}

// flood brings all nodes of the class into the heap.
func (h *heap) flood(r *room, c cluster.Class) {
	var fresh []entryPlan
	r.State.NodesOf(c, func(slot int, k cluster.OnNode) {
		if n := r.State.At(slot); h.in != nil && !h.in.has(n) || !h.enough(n) {
			return
		}
		bound := noCost() // perhaps nothing is evicted
		if bound.moved.tasks = 1; r.way&moving == 0 {
			bound = h.least(r, c, &k)
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
		h.entries = append(h.entries, &fresh[i])
	}
	h.order(r)
}

// enough reports whether the node would have as much of devices as the shape requests
// at least, if all left it that may.
func (h *heap) enough(n *cluster.Node) bool {
	return n.Leavable() >= h.need || n.Leavable()+idleOn(n) >= h.need
}

// lower makes the cost a bound of both.
func (c *cost) lower(o *cost) {
	if o.compareEvicted(c) < 0 {
		c.tier, c.priority = o.tier, o.priority
	}
	c.beyond, c.tasks, c.jobs, c.young = min(c.beyond, o.beyond), min(c.tasks, o.tasks), min(c.jobs, o.jobs), min(c.young, o.young)
}

// mights says which classes might have victims that leave in the way; nil where that is
// not known.
func (r *room) mights(w way) func(cluster.Class) bool {
	var all []func(cluster.Class) bool
	for p := range purposes {
		if r.may[p] == nil || p == Move && w&moving == 0 || p != Move && w&evicting == 0 {
			continue
		}
		if r.might[p] == nil {
			return nil
		}
		all = append(all, r.might[p])
	}
	return func(c cluster.Class) bool {
		return slices.ContainsFunc(all, func(might func(cluster.Class) bool) bool { return might(c) })
	}
}

// anyOf reports whether a class runs that might have victims which leave in the way.
func (r *room) anyOf(w way) bool {
	might := r.mights(w)
	if might == nil {
		return true
	}
	found := false
	r.State.Classes(func(c cluster.Class) bool {
		found = might(c)
		return !found
	})
	return found
}

// check fails the session where a node was left out that has victims.
func (h *heap) check(r *room, t *cluster.Task, ask verdict) {
	class := r.class
	r.class = nil // every task is asked about
	defer func() { r.class = class }()
	r.State.Changed(0, func(slot int) {
		if h.bound(r, t, slot, ask) != nil && !slices.ContainsFunc(h.entries, func(e *entryPlan) bool {
			return e.slot == slot || e.class != nil && r.State.RunsOn(*e.class, slot)
		}) {
			r.fail("engine", "node %s has room for task %s if others are evicted, and none of their classes might be", r.State.At(slot).Name, t.ID)
		}
	})
}
