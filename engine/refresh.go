package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// rebuild judges the peers of every number.
func (x *index) rebuild(r *ranking) {
	d := r.division
	r.generation, r.version, r.reranks, r.domainClock = d.generation, d.now(), x.view.Recent().Reranks(), x.domains.clock
	r.statics.reset(d.specs())
	if r.sizes == nil {
		r.ranks = nil // they are those of State
	}
	r.keys, r.codes, r.sizes = r.keys[:0], r.codes[:0], r.sizes[:0]
	r.counts, r.tallies, r.nearest = r.counts[:0], nil, nearestNodes{}
	r.feasible, r.compared = 0, 0
	r.kept.forget()
	r.unsettled.forget()
	x.grow(r)
	ranks := x.view.Recent().Ranks()
	for i := range r.keys {
		if size := d.size(i); size > 0 {
			slot := d.first(i)
			key, c := x.judgeSettled(r, i, x.view.At(slot))
			r.change(i, key, c, size, ranks[slot])
		}
	}
	r.build()
}

// grow adds entries for the numbers that the division has got.
func (x *index) grow(r *ranking) {
	d := r.division
	r.statics.grow(d.specs())
	n := d.len()
	more := n - len(r.keys)
	from := len(r.keys)
	r.keys, r.codes = slices.Grow(r.keys, more)[:n], slices.Grow(r.codes, more)[:n]
	for i := from; i < n; i++ {
		r.keys[i], r.codes[i] = absent, 0
	}
	if d.byNode() {
		r.ranks, r.sizes = x.view.Recent().Ranks(), nil
		return
	}
	r.ranks, r.sizes = slices.Grow(r.ranks[:from], more)[:n], slices.Grow(r.sizes, more)[:n]
	for i := from; i < n; i++ {
		r.ranks[i], r.sizes[i] = 0, 0
	}
}

// With more than leastMany changes, and more than one for manyChanges entries, all entries are visited
// in order, and the tree is updated once for all of them, which is faster than following the list of
// changes and updating the tree for each.
const (
	manyChanges = 8
	leastMany   = 1000
)

// areMany reports whether so many changes are taken in at once.
func areMany(changes uint64, entries int) bool {
	return changes > uint64(max(leastMany, entries/manyChanges))
}

// refresh takes in the changes of the division.
func (x *index) refresh(r *ranking) {
	d, recent := r.division, x.view.Recent()
	changes := d.now() - r.version // at most this many
	if d.len() > len(r.keys) || d.specs() > len(r.statics.answers) {
		x.grow(r)
		r.extend()
	}
	reranked := r.reranks != recent.Reranks()
	r.nearest.outdated = r.nearest.outdated || reranked
	switch {
	case reranked:
		x.refreshMany(r, true)
	case areMany(changes, len(r.keys)):
		x.refreshMany(r, false)
	default:
		x.refreshFew(r)
	}
	r.version, r.reranks = d.now(), recent.Reranks()
}

// refreshFew visits the entries that changed.
func (x *index) refreshFew(r *ranking) {
	d, recent := r.division, x.view.Recent()
	ranks := recent.Ranks()
	// Slots that have a node with another name are emptied before any node is judged. Their old
	// keys must not be compared by the ranks of their new nodes.
	if d.byNode() && recent.NodesAdded() > r.version {
		recent.Nodes(r.version, func(slot int) {
			if recent.AddedVersion(slot) > r.version {
				r.nearest.outdated = true // the rank of the former node is not known
				r.count(slot, absent, 0, 0, ranks[slot])
				r.set(slot, absent, ranks[slot])
			}
		})
	}
	d.changes(r.version, func(i int) {
		size, rank := r.now(i, ranks)
		key, c := x.judgeChanged(r, i, size)
		r.count(i, key, c, size, rank)
		r.set(i, key, rank)
	})
}

// now returns how many nodes the entry has now, and the rank of the first of them, or the one that it
// had if there are none.
func (r *ranking) now(i int, ranks []int64) (size int, rank int64) {
	if size = r.division.size(i); size == 0 {
		return 0, r.ranks[i]
	}
	return size, ranks[r.division.first(i)]
}

// refreshMany visits all entries. If they got new ranks, the whole tree is made anew.
func (x *index) refreshMany(r *ranking, reranked bool) {
	d, ranks := r.division, x.view.Recent().Ranks()
	x.blocks = x.blocks[:0]
	for i := range r.keys {
		changed := d.changed(i) > r.version
		if !changed && !reranked {
			continue
		}
		size, rank := r.now(i, ranks)
		if !changed {
			if r.sizes != nil { // otherwise they are those of State
				r.ranks[i] = rank
			}
			continue
		}
		key, c := x.judgeChanged(r, i, size)
		r.change(i, key, c, size, rank)
		x.noteBlock(i)
	}
	r.nearest.outdated = true
	if reranked {
		r.build()
	} else {
		r.update(x.blocks)
	}
}

// noteBlock adds the block of the entry to those that are updated together. Entries are noted in order.
func (x *index) noteBlock(i int) {
	if b := int32(i / fanout); len(x.blocks) == 0 || x.blocks[len(x.blocks)-1] != b {
		x.blocks = append(x.blocks, b)
	}
}

// judgeChanged returns the key and the code of an entry that changed and has so many nodes now.
func (x *index) judgeChanged(r *ranking, i, size int) (int64, uint16) {
	d := r.division
	switch {
	case size == 0:
		r.unsettled.remove(i)
		return absent, r.codes[i]
	case d.byNode():
		return x.judgeNode(r, i)
	case r.sizes[i] > 0 && d.renewed(i) <= r.version: // they have the same pattern as before
		return r.keys[i], r.codes[i]
	}
	return x.judgeOnce(r, i)
}

// judgeNode is judgeChanged for a node without peers.
func (x *index) judgeNode(r *ranking, slot int) (int64, uint16) {
	n := x.view.At(slot)
	answer := &r.statics.answers[slot]
	switch {
	case n.SpecVersion() > r.version:
		*answer = unjudged
	case *answer == staticallyRejected:
		return r.keys[slot], r.codes[slot]
	}
	if *answer != unjudged && x.quickly(r, n) {
		r.unsettled.add(slot)
		if r.codes[slot] != 0 { // it was rejected before too
			return r.keys[slot], r.codes[slot]
		}
		return unsettledKey, unsettledCode
	}
	r.unsettled.remove(slot)
	return x.judgeSettled(r, slot, n)
}

// judgeSettled calls the hooks for the node of an entry.
func (x *index) judgeSettled(r *ranking, i int, n *cluster.Node) (int64, uint16) {
	d := r.division
	switch {
	case r.exceptDomains:
		pattern := x.equal.list[x.equal.of(i)].pattern
		a := r.kept.find(pattern)
		if a == nil || x.twin {
			key, c := x.judge(r, i, n)
			if a != nil && (a.key != key || a.code != c) {
				x.fault.fail("engine", "hooks that are declared with EqualNodes have other answers for node %s than for a node that was equal to it", n.Name)
			}
			a = r.kept.keep(keptAnswer{key, pattern, c}, len(r.keys))
		}
		return x.withDomain(r, i, n, a.key, a.code), a.code
	case d.byNode():
		key, c := x.judge(r, i, n)
		return x.withDomain(r, i, n, key, c), c
	}
	key, c := x.judge(r, d.spec(i), n)
	r.kept.keep(keptAnswer{key, d.list[i].pattern, c}, len(d.at))
	return key, c
}

// change sets the key, the code, the size and the rank of an entry without updating the tree.
func (r *ranking) change(i int, key int64, c uint16, size int, rank int64) {
	r.count(i, key, c, size, rank)
	if r.keys[i] = key; r.ranks[i] != rank {
		r.ranks[i] = rank
	}
}

// count sets the code and the size of an entry and counts its nodes, which get another key and rank. The entry
// still has the old ones.
func (r *ranking) count(i int, key int64, c uint16, size int, rank int64) {
	r.nearest.outdate(r.keys[i], r.ranks[i], key, rank)
	was := r.sizeOf(i)
	if was == size && r.codes[i] == c {
		return
	}
	r.add(r.codes[i], -was)
	r.add(c, size)
	if r.codes[i] = c; r.sizes != nil {
		r.sizes[i] = int32(size)
	}
}

// sizeOf returns how many nodes the entry had when it was counted.
func (r *ranking) sizeOf(i int) int {
	switch {
	case r.sizes != nil:
		return int(r.sizes[i])
	case r.keys[i] == absent:
		return 0
	}
	return 1
}

// add counts nodes with the code.
func (r *ranking) add(c uint16, nodes int) {
	if nodes == 0 {
		return
	}
	r.tallies = nil
	if c == 0 {
		r.feasible += nodes
		return
	}
	for int(c) >= len(r.counts) {
		r.counts = append(r.counts, 0)
	}
	r.counts[c] += int32(nodes)
}

// nearestNodes is the rejected nodes of a ranking that are nearest to being feasible, for explanations.
type nearestNodes struct {
	misses    []Miss  // nil: they are not known
	slots     []int32 // of their nodes
	version   uint64  // the version of State that they are of
	key, rank int64   // of the last of them
	outdated  bool    // an entry that may have one of the nearest nodes has changed since
}

// outdate notes that an entry changed.
func (n *nearestNodes) outdate(old, oldRank, key, rank int64) {
	if most := max(old, key); most > n.key || most == n.key && min(oldRank, rank) <= n.rank {
		n.outdated = true
	}
}
