package engine

import "math"

// fanout is how many candidates are compared at one level of a tree. A wide, flat tree is
// faster than a deep one: a block is a few cache lines, and most changes of a key affect
// only the lowest level.
const fanout = 32

// absent is the key of a slot without a node.
const absent = math.MinInt64

// tree keeps the best of many slots. The key of a slot is its score if it is at least 0. A
// key below 0 means that the node is rejected; the nearer to 0 it is, the nearer the node is
// to being feasible. Of equal keys, the slot with the lower rank wins. Level 0 has the winner
// of each block of slots, level 1 the winner of each block of level 0, and so on; the last
// level has one winner.
type tree struct {
	keys   []int64
	levels [][]int32
	spare  []heapEntry // memory of the last walk, for the next one
}

// build makes all levels anew from the keys.
func (t *tree) build(ranks []int64) {
	t.levels = t.levels[:0]
	for n := blocks(len(t.keys)); ; n = blocks(n) {
		level := make([]int32, n)
		t.levels = append(t.levels, level)
		for b := range level {
			level[b] = t.winner(len(t.levels)-1, b, ranks)
		}
		if n <= 1 {
			return
		}
	}
}

// update makes the levels of the slots whose keys have changed anew. The blocks are those of the
// slots, in order; update changes the list. It builds all levels if there are more slots than before.
func (t *tree) update(changed []int32, ranks []int64) {
	if len(t.levels) == 0 || len(t.levels[0]) != blocks(len(t.keys)) {
		t.build(ranks)
		return
	}
	for level := range t.levels {
		above := changed[:0]
		for _, b := range changed {
			t.levels[level][b] = t.winner(level, int(b), ranks)
			if up := b / fanout; len(above) == 0 || above[len(above)-1] != up {
				above = append(above, up)
			}
		}
		changed = above
	}
}

func blocks(n int) int { return (n + fanout - 1) / fanout }

// winner returns the best slot of a block.
func (t *tree) winner(level, block int, ranks []int64) int32 {
	from := block * fanout
	if level == 0 {
		to := min(from+fanout, len(t.keys))
		best := int32(from)
		bestKey := t.keys[from]
		for i := from + 1; i < to; i++ {
			if k := t.keys[i]; k > bestKey || (k == bestKey && ranks[i] < ranks[best]) {
				best, bestKey = int32(i), k
			}
		}
		return best
	}
	below := t.levels[level-1]
	to := min(from+fanout, len(below))
	best := below[from]
	bestKey := t.keys[best]
	for _, w := range below[from+1 : to] {
		if k := t.keys[w]; k > bestKey || (k == bestKey && ranks[w] < ranks[best]) {
			best, bestKey = w, k
		}
	}
	return best
}

// set changes the key of one slot and updates the levels.
func (t *tree) set(slot int, key int64, ranks []int64) {
	old := t.keys[slot]
	if old == key {
		return
	}
	t.keys[slot] = key
	me := int32(slot)
	at := slot
	for level := range t.levels {
		at /= fanout
		w := t.levels[level][at]
		switch {
		case w == me && key < old:
			t.levels[level][at] = t.winner(level, at, ranks)
		case w == me: // its key is higher than before, so it still wins this block
		case key > t.keys[w] || (key == t.keys[w] && ranks[me] < ranks[w]):
			t.levels[level][at] = me
		default: // it did not win this block before and does not now, so higher levels do not change
			return
		}
	}
}

// top returns the best slot, or -1 if there are no slots.
func (t *tree) top() int {
	if len(t.keys) == 0 {
		return -1
	}
	return int(t.levels[len(t.levels)-1][0])
}

// walk visits slots from the best to the worst until visit returns false. It opens the best
// block first, so that it reads few slots beyond those that it visits.
func (t *tree) walk(ranks []int64, visit func(slot int) bool) {
	if len(t.keys) == 0 {
		return
	}
	var q blockHeap
	q.tree, q.ranks, q.entries, t.spare = t, ranks, t.spare[:0], nil
	defer func() { t.spare = q.entries }()
	last := len(t.levels) - 1
	q.push(heapEntry{slot: t.levels[last][0], level: int8(last), at: 0})
	for len(q.entries) > 0 {
		e := q.pop()
		if e.level < 0 {
			if t.keys[e.slot] == absent || !visit(int(e.slot)) {
				return
			}
			continue
		}
		from := int(e.at) * fanout
		if e.level == 0 {
			for i := from; i < min(from+fanout, len(t.keys)); i++ {
				if t.keys[i] != absent {
					q.push(heapEntry{slot: int32(i), level: -1})
				}
			}
			continue
		}
		below := t.levels[e.level-1]
		for b := from; b < min(from+fanout, len(below)); b++ {
			q.push(heapEntry{slot: below[b], level: e.level - 1, at: int32(b)})
		}
	}
}

// heapEntry is a block of a level, represented by its winner, or a single slot (level -1).
type heapEntry struct {
	slot  int32
	at    int32
	level int8
}

// blockHeap is a binary heap of blocks and slots, the best first.
type blockHeap struct {
	tree    *tree
	ranks   []int64
	entries []heapEntry
}

func (q *blockHeap) before(a, b heapEntry) bool {
	ka, kb := q.tree.keys[a.slot], q.tree.keys[b.slot]
	if ka != kb {
		return ka > kb
	}
	return q.ranks[a.slot] < q.ranks[b.slot]
}

func (q *blockHeap) push(e heapEntry) {
	q.entries = append(q.entries, e)
	for i := len(q.entries) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.before(q.entries[i], q.entries[up]) {
			return
		}
		q.entries[i], q.entries[up] = q.entries[up], q.entries[i]
		i = up
	}
}

func (q *blockHeap) pop() heapEntry {
	top := q.entries[0]
	n := len(q.entries) - 1
	q.entries[0] = q.entries[n]
	q.entries = q.entries[:n]
	for i := 0; ; {
		best := i
		for _, c := range [...]int{2*i + 1, 2*i + 2} {
			if c < n && q.before(q.entries[c], q.entries[best]) {
				best = c
			}
		}
		if best == i {
			return top
		}
		q.entries[i], q.entries[best] = q.entries[best], q.entries[i]
		i = best
	}
}
