package engine

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Domain is the state of a domain: the nodes with one value of a label.
type Domain struct {
	Nodes int // how many of its nodes have devices
	Idle  int // on how many of these no device is held, reserved or lost
}

// DomainScore returns a score from 0 to 100 for a node; higher is better. The domain is that of the
// node. It is empty if the node is in none.
type DomainScore func(*cluster.Shape, *cluster.Node, Domain) float64

// domainScore is a DomainScore with its level.
type domainScore struct {
	level string
	fn    DomainScore
}

// AddDomainScore registers a score that depends on the shape, the node, and the state of the domain
// of the node: the nodes with the same value of the label level. It is called for a feasible node
// when the node or the Domain has changed since the last call, and must depend on nothing else. If
// the Domain changes, the score is computed again for all nodes of this domain and every shape in
// use, so a level should have small domains, such as racks. If matters is not nil and returns false
// for a shape, the score is left out for all nodes.
//
// Combining: as AddShapeScore.
func AddDomainScore(h *Hooks, level string, matters func(*cluster.Shape) bool, fn DomainScore) {
	k := add(h, &h.domainScores, domainScore{level, fn}, fn == nil)
	k.shapes, k.origin = matters, fn
}

// domains keeps the states of the domains of the levels for which scores are registered. It reads
// only the nodes that have changed.
type domains struct {
	since  cluster.Since
	levels []domainLevel
	clock  uint64         // the version of the last change of a domain
	recent []domainChange // the changes in order; of several changes of a domain, the last counts
	begin  func()         // the functions of follow, kept to save allocations
	visit  func(slot int)
	view   cluster.View
}

// domainLevel is one label and its domains.
type domainLevel struct {
	label   string
	numbers map[string]int32 // by the value of the label
	list    []trackedDomain  // by number
	free    []int32          // numbers of domains that have no nodes any more
	at      []int32          // by slot: one more than the number of the domain; 0: the node is in none
	state   []nodeState      // by slot
}

// nodeState says how a node counts in its domain.
type nodeState uint8

const (
	deviceless nodeState = iota
	inUse
	idle
)

// trackedDomain is a domain with its nodes.
type trackedDomain struct {
	Domain
	slots   []int32
	version uint64
}

// domainChange names a domain that changed.
type domainChange struct {
	version uint64
	level   int
	number  int32
}

// open sets the levels: those of the hooks of the session.
func (d *domains) open(h *Hooks) {
	same := len(d.levels) == len(h.domainScores)
	for i := 0; same && i < len(d.levels); i++ {
		same = d.levels[i].label == h.domainScores[i].fn.level
	}
	if same {
		return
	}
	clock := d.clock
	*d = domains{clock: clock + 1}
	for i := range h.domainScores {
		d.levels = append(d.levels, domainLevel{label: h.domainScores[i].fn.level})
	}
	d.begin, d.visit = d.forget, d.read
}

// forget drops all domains, because the nodes are those of another State.
func (d *domains) forget() {
	d.recent, d.clock = nil, d.clock+1
	for i := range d.levels {
		l := &d.levels[i]
		*l = domainLevel{label: l.label, numbers: map[string]int32{}}
	}
}

// follow reads the nodes that have changed.
func (d *domains) follow(v cluster.View) {
	d.view = v
	d.since.Nodes(v, d.begin, d.visit)
	if live := len(d.levels); live > 0 && len(d.recent) > 64 {
		for i := range d.levels {
			live += len(d.levels[i].list)
		}
		if len(d.recent) > 4*live {
			d.recent = slices.DeleteFunc(d.recent, func(c domainChange) bool { return !d.isLast(c) })
		}
	}
}

// isLast reports whether the domain has not changed after the change.
func (d *domains) isLast(c domainChange) bool {
	return d.levels[c.level].list[c.number].version == c.version
}

// read takes in the node of the slot.
func (d *domains) read(slot int) {
	n := d.view.At(slot)
	state := stateOf(n)
	for i := range d.levels {
		l := &d.levels[i]
		for slot >= len(l.at) {
			l.at, l.state = append(l.at, 0), append(l.state, deviceless)
		}
		now := int32(0)
		if n != nil {
			if value, ok := n.Labels[l.label]; ok {
				now = 1 + l.numberOf(value)
			}
		}
		was, before := l.at[slot], l.state[slot]
		if was == now && (now == 0 || before == state) {
			l.state[slot] = state
			continue
		}
		if was > 0 {
			l.list[was-1].count(before, -1)
			d.changed(i, was-1)
		}
		if now > 0 {
			l.list[now-1].count(state, +1)
			d.changed(i, now-1)
		}
		if was != now {
			l.move(slot, was, now)
		}
		l.at[slot], l.state[slot] = now, state
	}
}

// stateOf returns how the node counts in a domain. The slot may have no node.
func stateOf(n *cluster.Node) nodeState {
	if n == nil || len(n.Devices) == 0 {
		return deviceless
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; d.Lost || !d.Idle() {
			return inUse
		}
	}
	return idle
}

// numberOf returns the number of the domain with the value.
func (l *domainLevel) numberOf(value string) int32 {
	if number, known := l.numbers[value]; known {
		return number
	}
	number := int32(len(l.list))
	if last := len(l.free) - 1; last >= 0 {
		number, l.free = l.free[last], l.free[:last]
	} else {
		l.list = append(l.list, trackedDomain{})
	}
	l.numbers[strings.Clone(value)] = number
	return number
}

// move moves the node in the slot from one domain to another; 0: none.
func (l *domainLevel) move(slot int, from, to int32) {
	if to > 0 {
		l.list[to-1].slots = append(l.list[to-1].slots, int32(slot))
	}
	if from == 0 {
		return
	}
	d := &l.list[from-1]
	i := slices.Index(d.slots, int32(slot))
	last := len(d.slots) - 1
	d.slots[i] = d.slots[last]
	if d.slots = d.slots[:last]; last > 0 {
		return
	}
	for value, number := range l.numbers {
		if number == from-1 {
			delete(l.numbers, value)
			l.free = append(l.free, number)
			return
		}
	}
}

func (t *trackedDomain) count(s nodeState, by int) {
	if s != deviceless {
		t.Nodes += by
	}
	if s == idle {
		t.Idle += by
	}
}

func (d *domains) changed(level int, number int32) {
	d.clock++
	d.levels[level].list[number].version = d.clock
	d.recent = append(d.recent, domainChange{d.clock, level, number})
}

// of returns the state of the domain of the node in the slot, of the level with this index.
func (d *domains) of(level, slot int) Domain {
	l := &d.levels[level]
	if slot >= len(l.at) || l.at[slot] == 0 {
		return Domain{}
	}
	return l.list[l.at[slot]-1].Domain
}

// domainHooks lists the hooks of the session that are called for the shape of the ranking.
func (x *index) domainHooks(r *ranking) {
	r.domainScorers = r.domainScorers[:0]
	for i := range x.hooks.domainScores {
		if o := &x.hooks.domainScores[i]; o.shapes == nil || o.shapes(r.shape) {
			r.domainScorers = append(r.domainScorers, o)
		}
	}
}

// withDomain adds the scores of the node's domains to its key, unless the node is rejected. A ranking with
// such scores has an entry for each node, so that its number is its slot.
func (x *index) withDomain(r *ranking, slot int, n *cluster.Node, key int64, c uint16) int64 {
	if len(r.domainScorers) == 0 || c != 0 || key == absent {
		return key
	}
	for slot >= len(r.domainKeys) {
		r.domainKeys = append(r.domainKeys, 0)
	}
	points, ok := x.domainPoints(r, slot, n)
	if r.domainKeys[slot] = points; !ok {
		return absent
	}
	return key + points
}

// domainPoints adds up the scores of the node's domains.
func (x *index) domainPoints(r *ranking, slot int, n *cluster.Node) (total int64, ok bool) {
	for _, o := range r.domainScorers {
		score := o.fn.fn(r.shape, n, x.domains.of(o.order, slot))
		if !(score >= 0 && score <= 100) {
			x.fault.fail(o.plugin, "a score of %v for node %s is not between 0 and 100", score, n.Name)
			return 0, false
		}
		total += o.weight * milli(score)
	}
	return total, true
}

// refreshDomains computes the scores of domains that changed again, for their feasible nodes.
func (x *index) refreshDomains(r *ranking) {
	d := &x.domains
	for i := len(d.recent) - 1; i >= 0 && d.recent[i].version > r.domainClock; i-- {
		change := d.recent[i]
		if !d.isLast(change) {
			continue
		}
		for _, at := range d.levels[change.level].list[change.number].slots {
			slot := int(at)
			n, key := x.view.At(slot), r.keys[slot]
			if key == absent || r.codes[slot] != 0 {
				continue
			}
			before := r.domainKeys[slot]
			points, ok := x.domainPoints(r, slot, n)
			if r.domainKeys[slot] = points; !ok {
				r.set(slot, absent, r.ranks[slot])
				return
			}
			r.set(slot, key-before+points, r.ranks[slot])
		}
	}
	r.domainClock = d.clock
}

// domainOf returns the state of the node's domain, computed from all its nodes, so that twin sessions
// can check the index against it.
func (f *finder) domainOf(level string, n *cluster.Node) Domain {
	var out Domain
	value, ok := n.Labels[level]
	if !ok {
		return out
	}
	all := f.split(nil, level)
	i, found := slices.BinarySearchFunc(all, value, func(in *scope, value string) int { return strings.Compare(in.value(), value) })
	if !found {
		return out
	}
	for _, o := range all[i].nodes {
		switch stateOf(o) {
		case idle:
			out.Idle++
			out.Nodes++
		case inUse:
			out.Nodes++
		}
	}
	return out
}
