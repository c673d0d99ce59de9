package engine

import (
	"cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/heap"
)

// nodeHeap keeps nodes by what it would cost to make room on them for tasks of one
// shape. At first an entry stands for all nodes of a class. When it comes to the top,
// the next of these nodes enters with a bound that its tasks give; when the node comes
// there, it is looked at closely. What was found is kept until the node changes; before
// it is used, the victims are asked about again.
type nodeHeap struct {
	entries heap.Heap[*entryPlan]
	current map[int]*entryPlan // by slot: the one that counts; nil: there is no room
	known   uint64             // version of the State it is up to date with
	in      *scope
	need    int64 // of devices that the shape requests at least, in thousandths
}

type entryPlan struct {
	slot      int
	cost      cost
	class     *cluster.Class // all nodes of the class that are not in the heap; the slot is that of the first
	opened    int            // nodes of the class
	rough     bool           // only the classes of its tasks are known
	looked    bool
	checkedAt uint64 // the version at which the plan was last found to be allowed
	plan      []*Victim
}

// heapKey is what decides what room costs: searches with equal keys share a heap.
type heapKey struct {
	way        way
	lastResort bool
	queue      string
	priority   int32
	shape      *cluster.Shape
	in         *scope
	// What the whole job requests: which victims may leave depends on it.
	devices, cores int64
	// The job, where something about the job itself decides, so that no other shares the heap.
	job *cluster.Job
}

// nodeHeaps are those of a session. Jobs that request alike share them until something is
// decided: queues may lose other jobs then.
type nodeHeaps struct {
	byKey   map[heapKey]*nodeHeap
	decided int // clerk.decided, when the first of them was made
}

// of returns the heap with the key, as of so many decisions, or makes it.
func (h *nodeHeaps) heapFor(key heapKey, decided int, make func() *nodeHeap) *nodeHeap {
	if h.byKey == nil || h.decided != decided {
		h.byKey, h.decided = map[heapKey]*nodeHeap{}, decided
	}
	if h.byKey[key] == nil {
		h.byKey[key] = make()
	}
	return h.byKey[key]
}

func newNodeHeap(view cluster.View, in *scope) *nodeHeap {
	return &nodeHeap{in: in, current: map[int]*entryPlan{}, entries: heap.Heap[*entryPlan]{Before: func(a, b *entryPlan) bool {
		ranks := view.Recent().Ranks()
		return cmp.Or(a.cost.compare(&b.cost), cmp.Compare(ranks[a.slot], ranks[b.slot])) < 0
	}}}
}

// verdict says whether a node is rejected as it is, and whether that may pass.
type verdict func(*cluster.Node) (rejected, transient bool)

// refresh takes in the nodes that changed; at first, those that might have victims.
func (h *nodeHeap) refresh(w *nodewise, t *cluster.Task, ask verdict) {
	if h.known > 0 {
		w.view.Recent().Nodes(h.known, func(slot int) { h.refine(w, t, slot, ask) })
	} else {
		h.need = w.accounts.devicesOf(t.Shape).Least
		h.enter(w)
		if w.finder.search == Twin {
			h.check(w, t, ask)
		}
	}
	h.known = w.view.Version()
}

// refine gives the node the bound that the tasks on it give.
func (h *nodeHeap) refine(w *nodewise, t *cluster.Task, slot int, ask verdict) {
	e := h.bound(w, t, slot, ask)
	if h.current[slot] = e; e != nil {
		h.entries.Push(e)
	}
}

// bound is what room costs at least in the slot; nil where there can be none.
func (h *nodeHeap) bound(w *nodewise, t *cluster.Task, slot int, ask verdict) *entryPlan {
	n := w.view.At(slot)
	if n == nil || !h.in.has(n) || !h.enough(n) {
		return nil
	}
	if rejected, transient := ask(n); rejected && !transient {
		return nil
	}
	return w.bound(t.Shape, n)
}

// cheapest is the node on which it costs least to make room; nil if there is none.
func (h *nodeHeap) cheapest(w *nodewise, t *cluster.Task) *entryPlan {
	ask := w.finder.verdicts(t)
	h.refresh(w, t, ask)
	for len(h.entries.Items) > 0 && w.looks < w.mostLooks() && w.fault.err == nil {
		e := h.entries.Items[0]
		switch {
		case e.class != nil:
			h.entries.Pop()
			h.open(w, t, e, ask)
		case h.current[e.slot] != e:
			h.entries.Pop()
		case e.rough:
			h.entries.Pop()
			h.refine(w, t, e.slot, ask)
		case e.looked && h.stillAllowed(w, e):
			return e
		default:
			h.entries.Pop()
			h.look(w, t, e)
		}
	}
	return nil
}

// look finds out what the node really costs; it comes back in its place, if at all.
func (h *nodeHeap) look(w *nodewise, t *cluster.Task, e *entryPlan) {
	e.plan, e.cost = w.look(t, w.view.At(e.slot))
	h.known = w.view.Version() // looking leaves everything as it was
	e.checkedAt = h.known
	if e.plan == nil {
		w.looks++
		h.current[e.slot] = nil
		return
	}
	e.looked = true
	h.entries.Push(e)
}

// still reports whether the victims of the plan may still leave, one after the other:
// others may have left since it was found.
func (h *nodeHeap) stillAllowed(w *nodewise, e *entryPlan) bool {
	if e.checkedAt == w.view.Version() {
		return true
	}
	mark := w.stmt.Checkpoint()
	ok := true
	for _, v := range e.plan {
		ok = ok && w.leaver.victims.mayLeave(v.Tasks[0], w.want.job) && w.leaver.leave(v)
	}
	w.stmt.Rollback(mark)
	h.known, e.checkedAt = w.view.Version(), w.view.Version()
	return ok
}

// others are further nodes that would do, best first.
func (h *nodeHeap) otherNodes(w *nodewise, t *cluster.Task, most int) []*entryPlan {
	var out []*entryPlan
	var aside []*entryPlan
	for len(out) < most {
		e := h.cheapest(w, t)
		if e == nil {
			break
		}
		h.entries.Pop()
		aside = append(aside, e)
		if len(aside) > 1 { // the first is the one chosen
			out = append(out, e)
		}
	}
	for _, e := range aside {
		h.entries.Push(e)
	}
	return out
}
