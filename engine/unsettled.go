package engine

import (
	"math"
	"math/bits"

	"github.com/berth-project/berth/cluster"
)

// QuickReject is a cheap test that a node is not feasible. If it returns true, the filter that it
// belongs to rejects the node for the shape. If it returns false, the filter may still reject it.
type QuickReject func(*cluster.Shape, *cluster.Node) bool

// AddQuickReject registers a cheap test for the filter that the plugin has just registered with
// AddShapeFilter. It is optional: when what is in use on a node changes, the engine calls the test
// first. If the test returns true, the filter is called for that node only when the reason is needed:
// for a refusal, for a job that has a topology or takes whole nodes, and in a search for room.
//
// Combining: a node is not feasible if the test of at least one filter returns true.
func AddQuickReject(h *Hooks, fn QuickReject) {
	last := len(h.shapeFilters) - 1
	switch {
	case fn == nil:
		misused(h, "AddQuickReject", "the function is nil; register a function")
	case last < 0 || h.opening == nil || h.lastPlugin != h.opening || h.lastEquality != &h.shapeFilters[last].equal || h.shapeFilters[last].static:
		misused(h, "AddQuickReject", "the last filter or score of the plugin is not an AddShapeFilter; call it after AddShapeFilter")
	default:
		h.shapeFilters[last].quick = fn
	}
}

// unsettled has the slots of a ranking that are known to be rejected, but not why: their keys and
// codes are those of an earlier rejection, or unsettledKey and unsettledCode. The filters are called
// for them when the reason is needed.
type unsettled struct {
	bits  []uint64
	count int // how many slots were added since the last time that none was unsettled
}

// The key and the code of a slot that was feasible or absent before it became unsettled.
const (
	unsettledKey  = math.MinInt64 + 1 // the lowest key of a node
	unsettledCode = 1
)

// add makes a slot unsettled.
func (u *unsettled) add(slot int) {
	for len(u.bits) <= slot/64 {
		u.bits = append(u.bits, 0)
	}
	u.bits[slot/64] |= 1 << (slot % 64)
	u.count++
}

// remove notes that the filters were called for the slot, or that it has no node.
func (u *unsettled) remove(slot int) {
	if u.count > 0 && slot/64 < len(u.bits) {
		u.bits[slot/64] &^= 1 << (slot % 64)
	}
}

// has reports whether the slot is unsettled.
func (u *unsettled) has(slot int) bool {
	return u.count > 0 && slot/64 < len(u.bits) && u.bits[slot/64]&(1<<(slot%64)) != 0
}

// take returns the next unsettled slot and removes it. It returns -1 if there is none. From is
// where the search begins.
func (u *unsettled) take(from int) int {
	for i := from / 64; i < len(u.bits); i++ {
		if w := u.bits[i]; w != 0 {
			u.bits[i] = w & (w - 1)
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	u.count = 0
	return -1
}

// forget makes all slots settled.
func (u *unsettled) forget() {
	clear(u.bits)
	u.count = 0
}

// quickly reports whether a cheap test shows that the node is rejected.
func (x *index) quickly(r *ranking, n *cluster.Node) bool {
	for _, f := range r.quick {
		if !f.quick(r.shape, n) {
			continue
		}
		if x.twin {
			x.filter(r, r.filters, n) // keeps the answers of the filters
			if f.fn(r.shape, n) == nil {
				x.fault.fail(f.plugin, "the test of AddQuickReject returned true for node %s, and the filter does not reject it", n.Name)
			}
		}
		return true
	}
	return false
}

// settled returns the shape's ranking, up to date and without unsettled slots.
func (x *index) settled(shape *cluster.Shape) *ranking {
	r := x.ranking(shape)
	if r.unsettled.count == 0 {
		return r
	}
	once, ranks, many := x.sharesAnswers(r), x.view.Recent().Ranks(), r.unsettled.count > leastMany
	x.blocks = x.blocks[:0]
	for slot := r.unsettled.take(0); slot >= 0; slot = r.unsettled.take(slot) {
		key, c, changed := x.judgeAgain(r, slot, x.view.At(slot), once, false, ranks)
		if !changed {
			continue
		}
		if r.codes[slot] = c; many {
			r.keys[slot] = key
			x.noteBlock(slot)
		} else {
			r.set(slot, key, ranks)
		}
	}
	if many {
		r.update(x.blocks, ranks)
	}
	if x.fault.err != nil {
		r.epoch = 0
	}
	return r
}
