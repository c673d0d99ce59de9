package engine

import (
	"cmp"

	"github.com/berth-project/berth/cluster"
)

// heap keeps nodes by what it would cost to make room on them for tasks of one
// shape. At first an entry stands for all nodes of a class. When it comes to the top,
// the next of these nodes enters with a bound that its tasks give; when the node comes
// there, it is looked at closely. What was found is kept until the node changes; before
// it is used, the victims are asked about again.
type heap struct {
	entries []*entryPlan
	current map[int]*entryPlan // by slot: the one that counts; nil: there is no room
	known   uint64             // version of the State it is up to date with
	in      *scope
	need    int64 // of devices that the shape requests at least, in thousandths
}

type entryPlan struct {
	slot   int
	cost   cost
	class  *cluster.Class // all nodes of the class that are not in the heap; the slot is that of the first
	opened int            // nodes of the class
	rough  bool           // only the classes of its tasks are known
	looked bool
	seen   uint64 // the version at which the plan was last found to be allowed
	plan   []*Victim
}

// heapKey is who asks: the same question has the same answer.
type heapKey struct {
	way      way
	last     bool
	queue    string
	priority int32
	shape    *cluster.Shape
	in       *scope
	// What the whole job asks for: who may go depends on it.
	devices, cores int64
	// Nobody else asks the same where something about the job itself decides.
	job *cluster.Job
}

// heaps are those of a session. Jobs that ask alike share them until something is decided.
type heaps struct{ byKey map[heapKey]*heap }

func (h *heaps) clear() { h.byKey = nil }

func newHeap(in *scope) *heap { return &heap{in: in, current: map[int]*entryPlan{}} }

// verdict says whether a node is rejected as it is, and whether that may pass.
type verdict func(*cluster.Node) (rejected, transient bool)

// refresh takes in the nodes that changed; at first, those that might have victims.
func (h *heap) refresh(w *nodewise, t *cluster.Task, ask verdict) {
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

// order makes a heap of the entries.
func (h *heap) order(w *nodewise) {
	for i := len(h.entries)/2 - 1; i >= 0; i-- {
		h.down(w, i)
	}
}

// refine gives the node the bound that the tasks on it give.
func (h *heap) refine(w *nodewise, t *cluster.Task, slot int, ask verdict) {
	e := h.bound(w, t, slot, ask)
	if h.current[slot] = e; e != nil {
		h.push(w, e)
	}
}

// bound is what room costs at least in the slot; nil where there can be none.
func (h *heap) bound(w *nodewise, t *cluster.Task, slot int, ask verdict) *entryPlan {
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
func (h *heap) cheapest(w *nodewise, t *cluster.Task) *entryPlan {
	ask := w.finder.verdicts(t)
	h.refresh(w, t, ask)
	for len(h.entries) > 0 && w.looks < w.mostLooks() && w.fault.err == nil {
		e := h.entries[0]
		switch {
		case e.class != nil:
			h.pop(w)
			h.open(w, t, e, ask)
		case h.current[e.slot] != e:
			h.pop(w)
		case e.rough:
			h.pop(w)
			h.refine(w, t, e.slot, ask)
		case e.looked && h.still(w, e):
			return e
		default:
			h.pop(w)
			h.look(w, t, e)
		}
	}
	return nil
}

// look finds out what the node really costs; it comes back in its place, if at all.
func (h *heap) look(w *nodewise, t *cluster.Task, e *entryPlan) {
	e.plan, e.cost = w.look(t, w.view.At(e.slot))
	h.known = w.view.Version() // looking leaves everything as it was
	e.seen = h.known
	if e.plan == nil {
		w.looks++
		h.current[e.slot] = nil
		return
	}
	e.looked = true
	h.push(w, e)
}

// still reports whether those who would go still may, one after the other:
// meanwhile others have gone.
func (h *heap) still(w *nodewise, e *entryPlan) bool {
	if e.seen == w.view.Version() {
		return true
	}
	mark := w.stmt.Checkpoint()
	ok := true
	for _, v := range e.plan {
		ok = ok && w.leaver.victims.mayLeave(v.Tasks[0], w.want.job) && w.leaver.leave(v)
	}
	w.stmt.Rollback(mark)
	h.known, e.seen = w.view.Version(), w.view.Version()
	return ok
}

// others are further nodes that would do, best first.
func (h *heap) others(w *nodewise, t *cluster.Task, most int) []*entryPlan {
	var out []*entryPlan
	var aside []*entryPlan
	for len(out) < most {
		e := h.cheapest(w, t)
		if e == nil {
			break
		}
		h.pop(w)
		aside = append(aside, e)
		if len(aside) > 1 { // the first is the one chosen
			out = append(out, e)
		}
	}
	for _, e := range aside {
		h.push(w, e)
	}
	return out
}

func (h *heap) less(w *nodewise, a, b *entryPlan) bool {
	ranks := w.view.Recent().Ranks()
	return cmp.Or(a.cost.compare(&b.cost), cmp.Compare(ranks[a.slot], ranks[b.slot])) < 0
}

func (h *heap) push(w *nodewise, e *entryPlan) {
	h.entries = append(h.entries, e)
	for i := len(h.entries) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(w, h.entries[i], h.entries[up]) {
			return
		}
		h.entries[i], h.entries[up] = h.entries[up], h.entries[i]
		i = up
	}
}

func (h *heap) pop(w *nodewise) {
	n := len(h.entries) - 1
	h.entries[0], h.entries[n] = h.entries[n], nil
	h.entries = h.entries[:n]
	h.down(w, 0)
}

// down moves the i-th entry to its place among those below it.
func (h *heap) down(w *nodewise, i int) {
	for {
		best := i
		for _, c := range [...]int{2*i + 1, 2*i + 2} {
			if c < len(h.entries) && h.less(w, h.entries[c], h.entries[best]) {
				best = c
			}
		}
		if best == i {
			return
		}
		h.entries[i], h.entries[best] = h.entries[best], h.entries[i]
		i = best
	}
}
