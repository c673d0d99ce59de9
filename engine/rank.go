package engine

import "math"

// fanout is how many candidates are compared at one level of a tree. A wide, flat tree is
// faster than a deep one: a block is a few cache lines, and most changes of a key affect
// only the lowest level.
const fanout = 32

// absent is the key of an entry without a node.
const absent = math.MinInt64

// tree keeps the best of many entries. The key of an entry is its score if it is at least 0. A
// key below 0 means that its nodes are rejected; the nearer to 0 it is, the nearer they are to being
// feasible. Of equal keys, the entry with the lower rank wins. Level 0 has the winner of each block
// of entries, level 1 the winner of each block of level 0, and so on; the last level has one winner.
type tree struct {
	keys   []int64
	ranks  []int64 // those of the first nodes of the entries
	levels [][]int32
	spare  []heapEntry // memory of the last walk, for the next one
}

// better reports whether the entry a precedes the entry b.
func (t *tree) better(a, b int32) bool {
	ka, kb := t.keys[a], t.keys[b]
	return ka > kb || ka == kb && t.ranks[a] < t.ranks[b]
}

// build makes all levels anew from the keys.
func (t *tree) build() {
	for i := range t.levels {
		t.levels[i] = t.levels[i][:0]
	}
	t.levels = t.levels[:0]
	t.extend()
}

// extend adds the blocks of the entries that were added since the levels were made. Blocks that
// exist already must be updated if they have new entries that are not absent.
func (t *tree) extend() {
	for level, n := 0, blocks(len(t.keys)); ; level, n = level+1, blocks(n) {
		if level == len(t.levels) {
			if level < cap(t.levels) {
				t.levels = t.levels[:level+1]
			} else {
				t.levels = append(t.levels, nil)
			}
		}
		for b := len(t.levels[level]); b < n; b++ {
			t.levels[level] = append(t.levels[level], t.winner(level, b))
		}
		if n <= 1 {
			return
		}
	}
}

// update makes the levels of entries that have changed anew. The blocks are those of the entries, in
// order; update changes the list.
func (t *tree) update(changed []int32) {
	t.extend()
	for level := range t.levels {
		above := changed[:0]
		for _, b := range changed {
			t.levels[level][b] = t.winner(level, int(b))
			if up := b / fanout; len(above) == 0 || above[len(above)-1] != up {
				above = append(above, up)
			}
		}
		changed = above
	}
}

func blocks(n int) int { return (n + fanout - 1) / fanout }

// winner returns the best entry of a block.
func (t *tree) winner(level, block int) int32 {
	from := block * fanout
	if level == 0 {
		to := min(from+fanout, len(t.keys))
		best := int32(from)
		bestKey := t.keys[from]
		for i := from + 1; i < to; i++ {
			if k := t.keys[i]; k > bestKey || (k == bestKey && t.ranks[i] < t.ranks[best]) {
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
		if k := t.keys[w]; k > bestKey || (k == bestKey && t.ranks[w] < t.ranks[best]) {
			best, bestKey = w, k
		}
	}
	return best
}

// set changes the key and the rank of one entry and updates the levels.
func (t *tree) set(entry int, key, rank int64) {
	me := int32(entry)
	old, oldRank := t.keys[me], t.ranks[me]
	if old == key && oldRank == rank {
		return
	}
	worse := key < old || key == old && rank > oldRank
	if t.keys[me] = key; oldRank != rank { // ranks may be those of State
		t.ranks[me] = rank
	}
	at := entry
	for level := range t.levels {
		at /= fanout
		w := t.levels[level][at]
		switch {
		case w == me && worse:
			t.levels[level][at] = t.winner(level, at)
		case w == me: // it is better than before, so it still wins this block
		case t.better(me, w):
			t.levels[level][at] = me
		default: // it did not win this block before and does not now, so higher levels do not change
			return
		}
	}
}

// top returns the best entry, or -1 if there are none.
func (t *tree) top() int {
	if len(t.keys) == 0 {
		return -1
	}
	return int(t.levels[len(t.levels)-1][0])
}

// walk visits the slots of nodes from the best to the worst until visit returns false: those of
// entries with a higher key first, and of equal keys by the ranks of the nodes. It opens the best
// block first, so that it reads few entries beyond those that it visits.
func (r *ranking) walk(visit func(slot int, key int64) bool) {
	if len(r.keys) == 0 {
		return
	}
	q := blockHeap{ranking: r, ranks: r.division.view.Recent().Ranks(), entries: r.spare[:0]}
	r.spare = nil
	r.walks++
	defer func() {
		r.walks--
		r.spare = q.entries
	}()
	last := len(r.levels) - 1
	q.push(q.winner(r.levels[last][0], int8(last), 0))
	for len(q.entries) > 0 {
		e := q.pop()
		switch from := int(e.at) * fanout; {
		case e.key == absent:
			return
		case e.level < 0:
			if !visit(q.visited(e), e.key) {
				return
			}
		case e.level == 0:
			for i := from; i < min(from+fanout, len(r.keys)); i++ {
				if r.keys[i] != absent {
					q.push(q.winner(int32(i), -1, i))
				}
			}
		default:
			below := r.levels[e.level-1]
			for b := from; b < min(from+fanout, len(below)); b++ {
				q.push(q.winner(below[b], e.level-1, b))
			}
		}
	}
}

// heapEntry is a block of a level, with the key and the rank of its winner, or, at level -1, a node
// of an entry.
type heapEntry struct {
	key, rank int64
	at        int32 // the block, or the entry
	level     int8
	node      position // in the list of nodes of the entry
}

// blockHeap is a binary heap of blocks and nodes, the best first.
type blockHeap struct {
	ranking *ranking
	ranks   []int64
	entries []heapEntry
}

func (q *blockHeap) winner(entry int32, level int8, at int) heapEntry {
	return heapEntry{key: q.ranking.keys[entry], rank: q.ranking.ranks[entry], at: int32(at), level: level}
}

// visited returns the slot of the node of e, which was taken from the heap, and adds the next node of
// the same entry.
func (q *blockHeap) visited(e heapEntry) int {
	d := q.ranking.division
	if d.byNode() {
		return int(e.at)
	}
	nodes := &d.list[e.at].nodes
	slot := nodes.slot(e.node)
	if next, ok := nodes.next(e.node); ok {
		e.node, e.rank = next, q.ranks[nodes.slot(next)]
		q.push(e)
	}
	return slot
}

// before reports whether e precedes o.
func (e *heapEntry) before(o *heapEntry) bool {
	if e.key != o.key {
		return e.key > o.key
	}
	return e.rank < o.rank
}

func (q *blockHeap) push(e heapEntry) {
	q.entries = append(q.entries, e)
	for i := len(q.entries) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.entries[i].before(&q.entries[up]) {
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
			if c < n && q.entries[c].before(&q.entries[best]) {
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
