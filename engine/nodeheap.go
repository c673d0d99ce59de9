package engine

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/heap"
)

// nodeHeap orders nodes by the cost of making room on them for a task of one shape, the
// cheapest first. Costs are refined only as far as needed. At first one entry represents all
// nodes with running tasks of a class. When that entry is at the top, the next node of the
// class is added, with a lower bound of its cost. When a node with a bound is at the top, a
// plan for it is searched for, which gives its cost. A plan is kept until the node changes,
// and the hooks are called for its victims again before it is used. If many nodes would have
// to be added, a survey replaces the entries of classes (see nodesurvey.go).
type nodeHeap struct {
	entries heap.Heap[*heapNode]
	current map[int]*heapNode // by slot of the node: its valid entry; nil: no room can be made there
	known   uint64            // the version of the State that the heap reflects
	in      *scope
	// firstOnly means that the heap has only the classes that may have a first victim. The
	// other classes are added when no plan is left without them, or when victims are
	// already evicted for the job.
	firstOnly bool
	opened    int     // how many nodes of classes were added one by one
	surveyed  *survey // nil before the first survey
	need      int64   // the least amount of devices that the shape requests, in thousandths
	// enteredFor is set if victims were evicted when classes were entered or when the first
	// survey was made. Fewer classes may have victims then, so other searches must not use the
	// heap.
	enteredFor *want
}

// heapNode is an entry of a nodeHeap: a node, or all nodes of a class or of a survey that
// have no entry of their own.
type heapNode struct {
	slot      int
	cost      cost
	ofClass   bool          // the entry represents a class; slot is then the first node without an entry
	class     cluster.Class // the class that it represents
	surveyed  bool          // the entry represents the nodes of the survey; slot is then the cheapest of them
	looked    bool          // plan and cost are those of a plan that was found
	checkedAt uint64        // the version of the State at which the victims of plan were last allowed
	plan      []*Victim
	kept      bool // the victims of plan are evicted in the statement already
}

// heapKey is everything that the cost of room may depend on. Searches with equal keys share a
// heap, so the verdicts of VictimRules must not depend on other properties of the waiting job,
// such as its labels.
type heapKey struct {
	way        way
	lastResort bool
	queue      string
	priority   int32
	shape      *cluster.Shape
	in         *scope
	// devices and cores are what all lacking tasks of the job request together. Hooks may
	// allow or protect a victim depending on it.
	devices, cores int64
	usable         string // see keeper.usable
	// job is set if the cost depends on the job itself, so that other jobs do not share
	// the heap.
	job *cluster.Job
}

// nodeHeaps holds the heaps of a session. They are dropped after every decision, since the
// victims that hooks allow may differ then.
type nodeHeaps struct {
	first    *nodeHeap // the first heap since the last decision; often there is no other
	firstKey heapKey
	byKey    map[heapKey]*nodeHeap // the others
	decided  int                   // clerk.decided when the first heap was made
	surveyed int                   // how many nodes the surveys of these heaps listed together
	// wide has the shapes for which a search of this session compared many nodes. The next
	// search for such a shape begins with a survey.
	wide map[*cluster.Shape]bool
	// gaveUp means that a search for the job of this turn ended because too many nodes had no plan.
	// The next search with the same heap looks at further nodes.
	gaveUp bool

	occupancies *occupancies

	memory nodewiseMemory // of the last search
	spare  *nodeHeap      // a heap that was dropped, the memory of which is used again
	nodes  []heapNode     // memory of entries; those before its length are in use

	rooms      []*roomParts // memory of rooms; the first of them are in use
	roomsInUse int
}

// maxSurveyed bounds memory: if surveys listed more nodes together, of about 50 bytes each, all
// heaps are dropped.
const maxSurveyed = 2_000_000

// dropOld drops all heaps if a decision was made since they were made, or if they list too many
// nodes.
func (h *nodeHeaps) dropOld(decided int) {
	switch {
	case h.decided != decided:
		if h.first != nil && len(h.first.current) <= maxSpare {
			h.spare = h.first
		}
		h.nodes = h.nodes[:0]
	case h.surveyed <= maxSurveyed:
		return
	}
	h.first, h.decided, h.surveyed = nil, decided, 0
	clear(h.byKey)
}

// maxSpare is how many entries a heap may have had if its memory is used again.
const maxSpare = 64

// heapFor returns the heap with the key for the search, or makes it.
func (h *nodeHeaps) heapFor(key heapKey, w *nodewise) *nodeHeap {
	isFirst := h.first == nil || key == h.firstKey
	known := h.first
	if !isFirst {
		known = h.byKey[key]
	}
	if known != nil && (known.enteredFor == nil || known.enteredFor == w.want && w.evicted) {
		return known
	}
	if known = h.spare; known != nil {
		known.reset(key.in)
		h.spare = nil
	} else {
		known = newNodeHeap(w.view, key.in)
	}
	if isFirst {
		h.first, h.firstKey = known, key
		return known
	}
	if h.byKey == nil {
		h.byKey = map[heapKey]*nodeHeap{}
	}
	h.byKey[key] = known
	return known
}

// node returns an empty entry.
func (h *nodeHeaps) node() *heapNode {
	if len(h.nodes) == cap(h.nodes) { // the full list stays in use
		h.nodes = make([]heapNode, 0, min(max(8, 2*cap(h.nodes)), 1024))
	}
	h.nodes = h.nodes[:len(h.nodes)+1]
	e := &h.nodes[len(h.nodes)-1]
	*e = heapNode{}
	return e
}

func newNodeHeap(view cluster.View, in *scope) *nodeHeap {
	return &nodeHeap{in: in, current: map[int]*heapNode{}, entries: heap.Heap[*heapNode]{Before: func(a, b *heapNode) bool {
		if by := a.cost.compare(&b.cost); by != 0 {
			return by < 0
		}
		ranks := view.Recent().Ranks()
		return ranks[a.slot] < ranks[b.slot]
	}}}
}

// reset makes the heap a new one.
func (h *nodeHeap) reset(in *scope) {
	clear(h.current)
	h.entries.Clear()
	*h = nodeHeap{in: in, current: h.current, entries: h.entries}
}

// verdict reports whether the filters reject a node as it is now, and whether waiting or
// evicting may cure that.
type verdict func(*cluster.Node) (rejected, transient bool)

// refresh updates the entries of the nodes that changed. The first call adds the entries of
// the classes that might have victims. As long as no victim is evicted for the job, these are
// only the classes that may have a first victim: no plan consists of other victims alone.
func (h *nodeHeap) refresh(w *nodewise, t *cluster.Task, ask verdict) {
	if h.known > 0 {
		w.view.Recent().Nodes(h.known, func(slot int) { h.refine(w, t, slot, ask) })
	} else {
		h.need = w.accounts.devicesOf(t.Shape).Least
		h.firstOnly = !w.evicted
		h.enter(w, t)
		if w.finder.search == Twin {
			h.check(w, t, ask)
		}
	}
	if h.firstOnly && w.evicted {
		h.enterAll(w, t, ask)
	}
	if s := h.surveyed; s != nil && s.evictedFor != nil && (s.evictedFor != w.want || !w.evicted) {
		h.survey(w, t)
	}
	h.known = w.view.Version()
}

// enterAll adds the classes that may have victims only after others.
func (h *nodeHeap) enterAll(w *nodewise, t *cluster.Task, ask verdict) {
	if h.firstOnly = false; w.ways.firsts == w.ways.might {
		return
	}
	h.enter(w, t)
	if w.finder.search == Twin {
		h.check(w, t, ask)
	}
}

// refine adds an entry for the node with the bound that follows from its tasks.
func (h *nodeHeap) refine(w *nodewise, t *cluster.Task, slot int, ask verdict) {
	e := h.bound(w, t, slot, ask)
	if h.current[slot] = e; e != nil {
		h.entries.Push(e)
	}
}

// bound returns an entry with a lower bound of the cost of room on the node in the slot. It
// returns nil if no room can be made there.
func (h *nodeHeap) bound(w *nodewise, t *cluster.Task, slot int, ask verdict) *heapNode {
	n := w.view.At(slot)
	if n == nil || !h.in.has(n) || !h.enough(n) {
		return nil
	}
	if rejected, transient := ask(n); rejected && !transient {
		return nil
	}
	return w.bound(t.Shape, n)
}

// cheapest returns the node on which making room costs least, with its plan. It returns nil
// if there is none, or if too many nodes were looked at and had no plan.
func (h *nodeHeap) cheapest(w *nodewise, t *cluster.Task) *heapNode {
	ask := w.finder.verdicts(t)
	h.refresh(w, t, ask)
	for w.looks < w.mostLooks() && w.fault.err == nil {
		if len(h.entries.Items) == 0 {
			if !h.firstOnly {
				break
			}
			h.enterAll(w, t, ask)
			continue
		}
		e := h.entries.Items[0]
		switch {
		case e.ofClass:
			h.entries.Pop()
			h.open(w, t, e, ask)
		case e.surveyed:
			h.entries.Pop()
			h.openSurveyed(w, t, e, ask)
		case h.current[e.slot] != e:
			h.entries.Pop()
		case e.looked && h.stillAllowed(w, e):
			return e
		default:
			h.entries.Pop()
			if h.look(w, t, e); e.kept {
				return e
			}
		}
	}
	w.heaps.gaveUp = w.heaps.gaveUp || w.looks >= w.mostLooks()
	return nil
}

// look searches for a plan for the node. If there is one, the entry is pushed again with
// the cost of the plan. If the entry is then the first one, the victims may stay evicted.
func (h *nodeHeap) look(w *nodewise, t *cluster.Task, e *heapNode) {
	mark, before := w.stmt.Checkpoint(), w.view.Version()
	if e.plan, e.cost, e.kept = w.look(t, w.view.At(e.slot)); e.kept {
		if e.kept = len(h.entries.Items) == 0 || h.entries.Before(e, h.entries.Items[0]); e.kept {
			e.looked = true
			h.entries.Push(e)
			h.known = before // the nodes of the plan have changed since
			return
		}
		w.stmt.Rollback(mark)
	}
	h.known = w.view.Version() // the search raises versions, but rolls back all its changes
	e.checkedAt = h.known
	if e.plan == nil {
		w.looks++
		h.current[e.slot] = nil
		return
	}
	e.looked = true
	h.entries.Push(e)
}

// stillAllowed reports whether the hooks still allow the victims of the plan, one after the
// other. Other victims may have been evicted since the plan was found.
func (h *nodeHeap) stillAllowed(w *nodewise, e *heapNode) bool {
	if e.checkedAt == w.view.Version() {
		return true
	}
	mark := w.stmt.Checkpoint()
	ok := true
	for _, v := range e.plan {
		ok = ok && w.evictor.victims.mayBeVictim(v.Tasks[0], w.want.job) && w.evictor.evict(v)
	}
	w.stmt.Rollback(mark)
	h.known, e.checkedAt = w.view.Version(), w.view.Version()
	return ok
}

// otherNodes returns up to so many nodes with plans after the cheapest one, cheapest first.
func (h *nodeHeap) otherNodes(w *nodewise, t *cluster.Task, most int) []*heapNode {
	var out []*heapNode
	var aside []*heapNode
	for len(out) < most {
		e := h.cheapest(w, t)
		if e == nil {
			break
		}
		h.entries.Pop()
		aside = append(aside, e)
		if len(aside) > 1 { // the first is the node that was chosen
			out = append(out, e)
		}
	}
	for _, e := range aside {
		h.entries.Push(e)
	}
	return out
}
