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

// unsettled has the entries of a ranking that are known to be rejected, but not why: their keys and
// codes are those of an earlier rejection, or unsettledKey and unsettledCode. The filters are called
// for them when the reason is needed.
type unsettled struct {
	bits  []uint64
	count int // how many entries were added since the last time that none was unsettled
}

// The key and the code of an entry without an earlier rejection.
const (
	unsettledKey  = math.MinInt64 + 1 // the lowest key of a node
	unsettledCode = 1
)

// add makes an entry unsettled.
func (u *unsettled) add(i int) {
	for len(u.bits) <= i/64 {
		u.bits = append(u.bits, 0)
	}
	u.bits[i/64] |= 1 << (i % 64)
	u.count++
}

// remove notes that the filters were called for the entry, or that it has no nodes.
func (u *unsettled) remove(i int) {
	if u.count > 0 && i/64 < len(u.bits) {
		u.bits[i/64] &^= 1 << (i % 64)
	}
}

// has reports whether the entry is unsettled.
func (u *unsettled) has(i int) bool {
	return u.count > 0 && i/64 < len(u.bits) && u.bits[i/64]&(1<<(i%64)) != 0
}

// take returns the next unsettled entry and removes it. It returns -1 if there is none. From is
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

// forget makes all entries settled.
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

// settled returns the shape's ranking, up to date and without unsettled entries.
func (x *index) settled(shape *cluster.Shape) *ranking {
	r := x.ranking(shape)
	if r.unsettled.count == 0 {
		return r
	}
	d, ranks, many := r.division, x.view.Recent().Ranks(), r.unsettled.count > leastMany
	x.blocks = x.blocks[:0]
	for i := r.unsettled.take(0); i >= 0; i = r.unsettled.take(i) {
		slot := d.first(i)
		key, c := x.judgeSettled(r, i, x.view.At(slot))
		if many {
			r.change(i, key, c, d.size(i), ranks[slot])
			x.noteBlock(i)
		} else {
			r.count(i, key, c, d.size(i), ranks[slot])
			r.set(i, key, ranks[slot])
		}
	}
	if many {
		r.update(x.blocks)
	}
	if x.fault.err != nil {
		r.epoch = 0
	}
	return r
}
