package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// heap keeps nodes by what it would cost to make room on them for tasks of one
// shape. A node enters with the least it could cost, and is looked at closely
// only when it comes to the top; what was found then holds until it changes.
type heap struct {
	entries []*entryPlan
	current []*entryPlan // by slot: the one that counts
	known   uint64       // version of the State it is up to date with
	in      *scope
}

type entryPlan struct {
	slot   int
	cost   cost
	looked bool
	plan   []*Victim
}

// heapKey is who asks: the same question has the same answer.
type heapKey struct {
	purpose  Purpose
	queue    string
	priority int32
	shape    *cluster.Shape
	in       *scope
}

// heap returns the nodes for the task. Jobs that ask alike share it within a
// session, unless something about the job itself or the task decides.
func (r *room) heap(t *cluster.Task, in *scope) *heap {
	filters, _, _ := r.taskHooks(t)
	shared := (in == nil || in.group == nil) && len(filters) == 0 && len(r.job.Displaced) == 0 && !r.job.Running()
	key := heapKey{r.purpose, r.job.Queue, r.job.Priority, t.Shape, in}
	h := r.heaps[key]
	if h == nil || !shared {
		h = &heap{in: in}
		if shared {
			if r.heaps == nil {
				r.heaps = map[heapKey]*heap{}
			}
			r.heaps[key] = h
		}
	}
	return h
}

// refresh takes in the nodes that changed.
func (h *heap) refresh(r *room, t *cluster.Task) {
	ask := r.verdicts(t)
	for len(h.current) < r.State.Slots() {
		h.current = append(h.current, nil)
	}
	r.State.Changed(h.known, func(slot int) {
		h.current[slot] = nil
		n := r.State.At(slot)
		if n == nil || !h.in.has(n) {
			return
		}
		if rejected, transient := ask(n); rejected && !transient {
			return
		}
		least, possible := r.least(t.Shape, n)
		if !possible {
			return
		}
		e := &entryPlan{slot: slot}
		e.cost.tasks[2] = int32(least)
		h.current[slot] = e
		h.push(r, e)
	})
	h.known = r.State.Version()
}

// cheapest is the node on which it costs least to make room; nil if there is none.
func (h *heap) cheapest(r *room, t *cluster.Task) *entryPlan {
	h.refresh(r, t)
	for len(h.entries) > 0 && r.looks < maxLooks && r.err == nil {
		e := h.entries[0]
		switch {
		case h.current[e.slot] != e:
			h.pop(r)
		case e.looked && h.still(r, e):
			return e
		default:
			if h.pop(r); e.looked {
				r.looks++ // it was looked at in vain before
			}
			h.look(r, t, e)
		}
	}
	return nil
}

// look finds out what the node really costs; it comes back in its place, if at all.
func (h *heap) look(r *room, t *cluster.Task, e *entryPlan) {
	e.plan = r.look(t, r.State.At(e.slot))
	h.known = r.State.Version() // looking leaves everything as it was
	if e.plan == nil {
		r.looks++
		h.current[e.slot] = nil
		return
	}
	e.looked, e.cost = true, costOf(r.State, e.plan)
	h.push(r, e)
}

// still reports whether those who would go still may: meanwhile others have gone.
// They are asked as they would go, one after the other: some may go only once
// others have, as when a queue is within its quota again.
func (h *heap) still(r *room, e *entryPlan) bool {
	mark := r.stmt.Checkpoint()
	for i, v := range e.plan {
		ok := !slices.ContainsFunc(v.Tasks, func(t *cluster.Task) bool { return !mayLeave(t, r.job) }) && v.stillOne() && r.may(v) == nil
		if ok && i == len(e.plan)-1 {
			break
		}
		if !ok || !r.evict(v) {
			h.undo(r, mark)
			return false
		}
	}
	h.undo(r, mark)
	return true
}

// undo takes back what was tried; it leaves everything as it was, so the heap
// knows of no change.
func (h *heap) undo(r *room, mark int) {
	if r.stmt.Checkpoint() > mark {
		r.stmt.Rollback(mark)
		h.known = r.State.Version()
	}
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
	for i := 0; ; {
		best := i
		for _, c := range [...]int{2*i + 1, 2*i + 2} {
			if c < n && h.less(r, h.entries[c], h.entries[best]) {
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

// least bounds from below how many tasks must go for the shape to fit the node;
// false where it would not fit even if all went that could.
func (r *room) least(s *cluster.Shape, n *cluster.Node) (int, bool) {
	count, widest := 0, 0
	for _, t := range n.Tasks {
		if mayLeave(t, r.job) {
			count++
			widest = max(widest, len(t.Claims))
		}
	}
	if count == 0 {
		return 0, false
	}
	for _, want := range s.Resources {
		l := n.Ledger(want.Name)
		if want.Value <= 0 || l != nil && l.Free() >= want.Value {
			continue
		}
		if l == nil || l.Capacity < want.Value {
			return 0, false
		}
		free := l.Free()
		for _, t := range n.Tasks {
			if mayLeave(t, r.job) {
				free += t.Holds(want.Name)
			}
		}
		if free < want.Value {
			return 0, false
		}
	}
	need := &s.Need
	if need.Devices == 0 || need.Layers != nil || need.SumAtLeast > 0 || widest == 0 {
		return 1, true
	}
	takes := 0
	for i := range n.Devices {
		if s.Takes(&n.Devices[i]) {
			takes++
		}
	}
	if takes >= need.Devices {
		return 1, true
	}
	var few [64]bool
	held := few[:min(len(n.Devices), len(few))]
	if len(n.Devices) > len(few) {
		held = make([]bool, len(n.Devices))
	}
	stays := 0 // devices that somebody holds who will not go
	for _, t := range n.Tasks {
		if mayLeave(t, r.job) {
			continue
		}
		for _, c := range t.Claims {
			if t.Status != cluster.Releasing && !held[c.Device] {
				held[c.Device] = true
				stays++
			}
		}
	}
	whole := need.Share == 0 && need.Memory == 0 || s.Isolation.Exclusive()
	if whole && len(n.Devices)-stays < need.Devices {
		return 0, false
	}
	return (need.Devices - takes + widest - 1) / widest, true
}
