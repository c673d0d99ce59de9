package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// rebuild judges every node.
func (x *index) rebuild(r *ranking) {
	n := x.view.Recent().Slots()
	r.keys = slices.Grow(r.keys[:0], n)[:n]
	r.statics.reset(n)
	r.codes = slices.Grow(r.codes[:0], n)[:n]
	r.counts, r.tallies, r.nearest = r.counts[:0], nil, nil
	r.feasible, r.nodes = 0, 0
	r.kept.forget()
	r.unsettled.forget()
	once := x.sharesAnswers(r)
	for slot := range n {
		var key int64
		var c uint16
		n := x.view.At(slot)
		if once && n != nil {
			key, c = x.judgeOnce(r, slot, n, true)
		} else {
			key, c = x.judge(r, slot, n, true)
		}
		key = x.withDomain(r, slot, n, key, c)
		r.keys[slot], r.codes[slot] = key, c
		r.count(key, c, +1)
	}
	r.build(x.view.Recent().Ranks())
	r.version, r.domainClock = x.view.Version(), x.domains.clock
}

// refresh judges the nodes that changed.
func (x *index) refresh(r *ranking) {
	recent := x.view.Recent()
	slots, lag := recent.Slots(), x.view.Version()-r.version // at most this many nodes changed
	grown := slots > len(r.keys)
	for len(r.keys) < slots {
		r.keys = append(r.keys, absent)
		r.codes = append(r.codes, 0)
	}
	r.statics.grow(slots)
	if lag > uint64(max(leastMany, slots/manyChanges)) {
		x.refreshMany(r)
		return
	}
	ranks := recent.Ranks()
	if grown {
		r.build(ranks)
	}
	// Slots that have a node with another name are emptied before any node is judged. Their old
	// keys must not be compared by the ranks of their new nodes.
	if recent.NodesAdded() > r.version {
		recent.Nodes(r.version, func(slot int) {
			if recent.AddedVersion(slot) > r.version {
				r.outdate(slot, r.keys[slot], absent, ranks)
				r.count(r.keys[slot], r.codes[slot], -1)
				r.set(slot, absent, ranks)
				r.codes[slot] = 0
			}
		})
	}
	once := lag >= fewChanges && r.shares && !x.patterns.yield.skips(int(lag)) && x.sharesAnswers(r)
	recent.Nodes(r.version, func(slot int) {
		if key, c, changed := x.judgeChanged(r, slot, once, ranks); changed {
			r.set(slot, key, ranks)
			r.codes[slot] = c
		}
	})
	r.version = x.view.Version()
}

// With fewer changes than fewChanges, equal nodes are not looked for. If more than leastMany slots,
// and more than one in manyChanges, may have changed, all slots are visited in order, and the tree
// is updated once for all of them, which is faster than following the list of changes and updating
// the tree for each. Equal nodes are then looked for even if that was not worth its time before.
const (
	fewChanges  = 8
	manyChanges = 8
	leastMany   = 1000
)

// refreshMany is refresh for many changes.
func (x *index) refreshMany(r *ranking) {
	recent, once := x.view.Recent(), x.sharesAnswers(r)
	ranks := recent.Ranks()
	r.nearest = nil
	x.blocks = x.blocks[:0]
	for slot := range r.keys {
		if recent.NodeVersion(slot) <= r.version {
			continue
		}
		key, c, changed := x.judgeChanged(r, slot, once, ranks)
		if changed {
			r.keys[slot], r.codes[slot] = key, c
		}
		// A slot may have a node with another rank, even if its key is the same.
		x.noteBlock(slot)
	}
	r.update(x.blocks, ranks)
	r.version = x.view.Version()
}

// noteBlock adds the block of the slot to those that are updated together. Slots are noted in order.
func (x *index) noteBlock(slot int) {
	if b := int32(slot / fanout); len(x.blocks) == 0 || x.blocks[len(x.blocks)-1] != b {
		x.blocks = append(x.blocks, b)
	}
}

// sharesAnswers reports whether equal nodes are judged once for the ranking. If so, it prepares the
// patterns for all its slots.
func (x *index) sharesAnswers(r *ranking) bool {
	if !r.shares {
		return false
	}
	if x.patterns.last > lastNumber {
		x.patterns.forget()
		x.patterns.last = 0
		for _, other := range x.rankings {
			other.kept.forget()
		}
	}
	x.patterns.begin(len(r.keys))
	return true
}

// judgeChanged judges the node in the slot after it changed. If its key or its code is another one
// than before, judgeChanged counts it and reports true.
func (x *index) judgeChanged(r *ranking, slot int, once bool, ranks []int64) (int64, uint16, bool) {
	n := x.view.At(slot)
	anew := true
	switch {
	case n == nil:
	case len(r.quick) > 0: // the tests read the node, so that nothing is gained by not reading it here
		anew = n.SpecVersion() > r.version
	case once:
		anew = x.patterns.specVersion(n, slot, x.view.Recent().NodeVersion(slot)) > r.version
	default:
		anew = n.SpecVersion() > r.version
	}
	if !anew && r.statics.answers[slot] == staticallyRejected {
		return 0, 0, false // a static filter rejects the node, whatever tasks hold of it
	}
	if !anew && n != nil && x.quickly(r, n) {
		r.unsettled.add(slot)
		if r.codes[slot] != 0 {
			return 0, 0, false // it was rejected before too
		}
		return r.changeTo(slot, unsettledKey, unsettledCode, ranks)
	}
	r.unsettled.remove(slot)
	return x.judgeAgain(r, slot, n, once, anew, ranks)
}

// judgeAgain is judgeChanged for a slot that is not found to be rejected without calling filters.
func (x *index) judgeAgain(r *ranking, slot int, n *cluster.Node, once, anew bool, ranks []int64) (int64, uint16, bool) {
	var key int64
	var c uint16
	if once && n != nil {
		key, c = x.judgeOnce(r, slot, n, anew)
	} else {
		key, c = x.judge(r, slot, n, anew)
	}
	return r.changeTo(slot, x.withDomain(r, slot, n, key, c), c, ranks)
}

// changeTo counts the new key and the new code of the slot. It reports whether one of them is another
// one than before.
func (r *ranking) changeTo(slot int, key int64, c uint16, ranks []int64) (int64, uint16, bool) {
	r.outdate(slot, r.keys[slot], key, ranks)
	if key == r.keys[slot] && c == r.codes[slot] {
		return key, c, false
	}
	r.count(r.keys[slot], r.codes[slot], -1)
	r.count(key, c, +1)
	return key, c, true
}

// outdate drops the nearest misses if the node in the slot, of which the key changes, is or becomes
// one of them, or may be rejected in another way with the same key.
func (r *ranking) outdate(slot int, old, key int64, ranks []int64) {
	if r.nearest == nil {
		return
	}
	if most, last := max(old, key), r.keys[r.lastNearest]; most > last || most == last && ranks[slot] <= ranks[r.lastNearest] {
		r.nearest = nil
	}
}

func (r *ranking) count(key int64, c uint16, by int32) {
	if key == absent {
		return
	}
	r.tallies = nil
	r.nodes += int(by)
	if c == 0 {
		r.feasible += int(by)
		return
	}
	for int(c) >= len(r.counts) {
		r.counts = append(r.counts, 0)
	}
	r.counts[c] += by
}
