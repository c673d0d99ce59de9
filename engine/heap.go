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

func newHeap(in *scope) *heap { return &heap{in: in, current: map[int]*entryPlan{}} }

// heap returns the nodes for the task. Jobs that ask alike share it until something is
// decided.
func (r *room) heap(t *cluster.Task, in *scope) *heap {
	key := heapKey{way: r.way, last: r.last, queue: r.job.Queue, priority: r.job.Priority, shape: t.Shape, in: in,
		devices: r.sum(r.devicesOf(t.Shape).Name), cores: r.sum(cluster.CPU)}
	filters, _, _ := r.taskHooks(t)
	if len(filters) > 0 {
		return newHeap(in) // what it costs depends on where the others of the gang are
	}
	if in != nil && in.group != nil || len(r.job.Displaced) > 0 || r.job.Running() {
		key.job = r.job
	}
	h := r.heaps[key]
	if h == nil {
		h = newHeap(in)
		if r.heaps == nil {
			r.heaps = map[heapKey]*heap{}
		}
		r.heaps[key] = h
	}
	return h
}

// sum is how much of the resource the job asks for with all that is lacking.
func (r *room) sum(resource string) int64 {
	sum, known := r.sums[resource]
	if !known {
		if r.sums == nil {
			r.sums = map[string]int64{}
		}
		sum = r.Asks(r.lacks, resource)
		r.sums[resource] = sum
	}
	return sum
}

// verdict says whether a node is rejected as it is, and whether that may pass.
type verdict func(*cluster.Node) (rejected, transient bool)

// refresh takes in the nodes that changed; at first, those that might have victims.
func (h *heap) refresh(r *room, t *cluster.Task, ask verdict) {
	if h.known > 0 {
		r.State.Changed(h.known, func(slot int) { h.refine(r, t, slot, ask) })
	} else {
		h.need = r.devicesOf(t.Shape).Least
		h.enter(r)
		if r.options.Search == Twin {
			h.check(r, t, ask)
		}
	}
	h.known = r.State.Version()
}

// order makes a heap of the entries.
func (h *heap) order(r *room) {
	for i := len(h.entries)/2 - 1; i >= 0; i-- {
		h.down(r, i)
	}
}

// refine gives the node the bound that the tasks on it give.
func (h *heap) refine(r *room, t *cluster.Task, slot int, ask verdict) {
	e := h.bound(r, t, slot, ask)
	if h.current[slot] = e; e != nil {
		h.push(r, e)
	}
}

// bound is what room costs at least in the slot; nil where there can be none.
func (h *heap) bound(r *room, t *cluster.Task, slot int, ask verdict) *entryPlan {
	n := r.State.At(slot)
	if n == nil || !h.in.has(n) || !h.enough(n) {
		return nil
	}
	if rejected, transient := ask(n); rejected && !transient {
		return nil
	}
	return r.bound(t.Shape, n)
}

// cheapest is the node on which it costs least to make room; nil if there is none.
func (h *heap) cheapest(r *room, t *cluster.Task) *entryPlan {
	ask := r.verdicts(t)
	h.refresh(r, t, ask)
	for len(h.entries) > 0 && r.looks < r.mostLooks() && r.err == nil {
		e := h.entries[0]
		switch {
		case e.class != nil:
			h.pop(r)
			h.open(r, t, e, ask)
		case h.current[e.slot] != e:
			h.pop(r)
		case e.rough:
			h.pop(r)
			h.refine(r, t, e.slot, ask)
		case e.looked && h.still(r, e):
			return e
		default:
			h.pop(r)
			h.look(r, t, e)
		}
	}
	return nil
}

// mostLooks is how many nodes without a plan are looked at.
func (r *room) mostLooks() int {
	if r.way == evicting|moving {
		return maxMixed
	}
	return maxLooks
}

// look finds out what the node really costs; it comes back in its place, if at all.
func (h *heap) look(r *room, t *cluster.Task, e *entryPlan) {
	e.plan, e.cost = r.look(t, r.State.At(e.slot))
	h.known = r.State.Version() // looking leaves everything as it was
	e.seen = h.known
	if e.plan == nil {
		r.looks++
		h.current[e.slot] = nil
		return
	}
	e.looked = true
	h.push(r, e)
}

// still reports whether those who would go still may, one after the other:
// meanwhile others have gone.
func (h *heap) still(r *room, e *entryPlan) bool {
	if e.seen == r.State.Version() {
		return true
	}
	mark := r.stmt.Checkpoint()
	ok := true
	for _, v := range e.plan {
		ok = ok && r.mayLeave(v.Tasks[0], r.job) && r.leave(v)
	}
	r.stmt.Rollback(mark)
	h.known, e.seen = r.State.Version(), r.State.Version()
	return ok
}

// others are further nodes that would do, best first.
func (h *heap) others(r *room, t *cluster.Task, most int) []*entryPlan {
	var out []*entryPlan
	var aside []*entryPlan
	for len(out) < most {
		e := h.cheapest(r, t)
		if e == nil {
			break
		}
		h.pop(r)
		aside = append(aside, e)
		if len(aside) > 1 { // the first is the one chosen
			out = append(out, e)
		}
	}
	for _, e := range aside {
		h.push(r, e)
	}
	return out
}

func (h *heap) less(r *room, a, b *entryPlan) bool {
	ranks := r.State.Ranks()
	return cmp.Or(a.cost.compare(&b.cost), cmp.Compare(ranks[a.slot], ranks[b.slot])) < 0
}

func (h *heap) push(r *room, e *entryPlan) {
	h.entries = append(h.entries, e)
	for i := len(h.entries) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(r, h.entries[i], h.entries[up]) {
			return
		}
		h.entries[i], h.entries[up] = h.entries[up], h.entries[i]
		i = up
	}
}

func (h *heap) pop(r *room) {
	n := len(h.entries) - 1
	h.entries[0], h.entries[n] = h.entries[n], nil
	h.entries = h.entries[:n]
	h.down(r, 0)
}

// down moves the i-th entry to its place among those below it.
func (h *heap) down(r *room, i int) {
	for {
		best := i
		for _, c := range [...]int{2*i + 1, 2*i + 2} {
			if c < len(h.entries) && h.less(r, h.entries[c], h.entries[best]) {
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
