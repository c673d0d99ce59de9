package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/recency"
)

// division divides the nodes of a State into peers, which are nodes that have the same key and the
// same code in each ranking that uses the division. The number of the peers is their index in every
// list of the ranking. There are two divisions: in one of them, equal nodes are peers, and in the
// other, every node has no peers but itself, and their number is its slot.
type division struct {
	view     cluster.View
	patterns *patterns // gives equal nodes the same pattern; nil: each node has no peers
	// The rest is not used if patterns is nil.
	generation uint64           // grows when the numbers of all peers become invalid
	followed   uint64           // the version of State that the division is up to date with
	list       []peers          // by number
	at         []int32          // by slot: one more than the number of its peers; 0: none
	numbers    map[uint32]int32 // by pattern
	free       []int32          // the numbers without nodes
	recent     recency.List     // of numbers
}

// peers are the nodes with one pattern.
type peers struct {
	nodes   slotList
	renewed uint64 // the version of the division at which they got the pattern
	pattern uint32
	spec    int32 // the number of the spec of the nodes
}

// byNode reports whether each node has no peers.
func (d *division) byNode() bool { return d.patterns == nil }

// forget makes all numbers invalid.
func (d *division) forget() {
	*d = division{patterns: d.patterns, generation: d.generation + 1}
	if d.patterns != nil {
		d.patterns.forget()
		d.numbers = map[uint32]int32{}
	}
}

// len returns how many numbers there are. Some may have no nodes.
func (d *division) len() int {
	if d.byNode() {
		return d.view.Recent().Slots()
	}
	return len(d.list)
}

// now returns the version of the last change of peers.
func (d *division) now() uint64 {
	if d.byNode() {
		return d.view.Version()
	}
	return d.recent.Version
}

// changes calls visit for the peers that changed after the version: their nodes or their pattern.
func (d *division) changes(since uint64, visit func(number int)) {
	if d.byNode() {
		d.view.Recent().Nodes(since, visit)
		return
	}
	d.recent.Since(since, visit)
}

// changed returns the version of the last change of the peers.
func (d *division) changed(number int) uint64 {
	if d.byNode() {
		return d.view.Recent().NodeVersion(number)
	}
	return d.recent.Versions[number]
}

// renewed returns the version at which the peers got their pattern. A node without peers gets another one
// with each change.
func (d *division) renewed(number int) uint64 {
	if d.byNode() {
		return d.changed(number)
	}
	return d.list[number].renewed
}

// size returns how many nodes the peers have.
func (d *division) size(number int) int {
	if !d.byNode() {
		return d.list[number].nodes.len()
	}
	if d.view.At(number) == nil {
		return 0
	}
	return 1
}

// first returns the slot of the node with the lowest name. The peers must have a node.
func (d *division) first(number int) int {
	if d.byNode() {
		return number
	}
	return d.list[number].nodes.first()
}

// of returns the number of the peers of the node in the slot. The slot must have a node.
func (d *division) of(slot int) int {
	if d.byNode() {
		return slot
	}
	return int(d.at[slot]) - 1
}

// spec returns by which number a ranking keeps the answers of static hooks for the peers.
func (d *division) spec(number int) int {
	if d.byNode() {
		return number
	}
	return int(d.list[number].spec)
}

// specs returns how many numbers of specs there are.
func (d *division) specs() int {
	if d.byNode() {
		return d.view.Recent().Slots()
	}
	return len(d.patterns.specs)
}

// follow takes in the nodes that have changed.
func (d *division) follow(view cluster.View) {
	if d.view != view {
		d.forget()
		d.view = view
	}
	if d.byNode() || d.followed == view.Version() {
		return
	}
	recent := view.Recent()
	if d.patterns.full(recent.Slots()) {
		d.forget()
		d.view = view
	}
	if more := recent.Slots() - len(d.at); more > 0 {
		d.at = append(d.at, make([]int32, more)...)
	}
	d.patterns.begin(recent.Slots())
	// A node that is not in its slot any more leaves first. Its rank is not known, and may be in use
	// by another node.
	var lost []int32 // numbers, each for every node that left
	recent.Nodes(d.followed, func(slot int) {
		if d.at[slot] > 0 && (view.At(slot) == nil || recent.AddedVersion(slot) > d.followed) {
			lost = append(lost, d.at[slot]-1)
			d.at[slot] = 0
		}
	})
	slices.Sort(lost)
	for _, number := range slices.Compact(lost) {
		d.list[number].nodes.retain(func(slot int32) bool { return d.at[slot] == number+1 })
		d.left(number)
	}
	ranks := recent.Ranks()
	recent.Nodes(d.followed, func(slot int) {
		if n := view.At(slot); n != nil {
			d.read(slot, n, ranks)
		}
	})
	d.followed = view.Version()
}

// read takes in the node in the slot.
func (d *division) read(slot int, n *cluster.Node, ranks []int64) {
	pattern, spec := d.patterns.of(n, slot)
	was := d.at[slot] - 1
	if was >= 0 {
		if d.list[was].pattern == pattern {
			return
		}
		d.list[was].nodes.remove(int32(slot), ranks)
		d.left(was)
	}
	now, known := d.numbers[pattern]
	if !known {
		now = d.number() // that of the node if it has no peers, so that fewer numbers change
		d.numbers[pattern] = now
	}
	d.list[now].nodes.insert(int32(slot), ranks)
	d.recent.Touch(int(now))
	if p := &d.list[now]; !known {
		p.pattern, p.spec, p.renewed = pattern, spec, d.recent.Version
	}
	d.at[slot] = now + 1
}

// left notes that nodes left the peers.
func (d *division) left(number int32) {
	d.recent.Touch(int(number))
	if p := &d.list[number]; p.nodes.len() == 0 {
		delete(d.numbers, p.pattern)
		d.free = append(d.free, number)
	}
}

// number returns a number for a new pattern.
func (d *division) number() int32 {
	if last := len(d.free) - 1; last >= 0 {
		number := d.free[last]
		d.free = d.free[:last]
		return number
	}
	d.list = append(d.list, peers{})
	d.recent.Grow()
	return int32(len(d.list) - 1)
}
