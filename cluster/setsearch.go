package cluster

import (
	"math/bits"
	"slices"
)

// setSearch compares all sets of devices of a node that has at most maxExact devices.
// Devices that differ in their index only are one class, and of a class those with the
// lowest indexes are taken.
type setSearch struct {
	wiring  *wiring
	idle    deviceMask
	classes [maxExact]deviceClass
	count   int // the number of classes
	taken   [maxExact]int
	found   bool
	champ   merit // the best set so far, if one was found
}

// deviceClass is devices that differ in their index only.
type deviceClass struct {
	at          islands
	score       int64
	waits, idle bool
	members     deviceMask
}

// add adds a device that the task can take.
func (s *setSearch) add(t candidate, waits bool) {
	c := deviceClass{at: s.wiring.at(t.device), score: t.score, waits: waits, idle: s.idle&(1<<t.device) != 0}
	k := slices.IndexFunc(s.classes[:s.count], func(o deviceClass) bool {
		return o.at == c.at && o.score == c.score && o.waits == c.waits && o.idle == c.idle
	})
	if k < 0 {
		k = s.count
		s.classes[k] = c
		s.count++
	}
	s.classes[k].members |= 1 << t.device
}

// best returns the best set of count devices. There must be as many.
func (s *setSearch) best(count int) deviceMask {
	s.extend(0, count, merit{ties: allTies})
	return s.champ.set
}

// extend adds left devices of the classes from k on to the set m, in every way. A set that
// has become worse than the best one in the first two rules is dropped, because more devices
// make it no better there.
func (s *setSearch) extend(k, left int, m merit) {
	if s.found && (m.waits > s.champ.waits || m.waits == s.champ.waits && m.ties < s.champ.ties) {
		return
	}
	if left == 0 {
		s.offer(m)
		return
	}
	if k == s.count {
		return
	}
	c := &s.classes[k]
	for n := min(left, bits.OnesCount16(uint16(c.members))); n >= 0; n-- {
		s.taken[k] = n
		s.extend(k+1, left-n, s.with(m, k, n))
	}
}

// with returns the set m with n devices of class k.
func (s *setSearch) with(m merit, k, n int) merit {
	if n == 0 {
		return m
	}
	c := &s.classes[k]
	add := func(ties uint8, pairs int) {
		if pairs > 0 {
			m.ties &= ties
			m.pairs += int64(pairs) * pairWeight(ties)
		}
	}
	add(c.at.ties(c.at), n*(n-1)/2)
	for o := range k {
		add(c.at.ties(s.classes[o].at), n*s.taken[o])
	}
	if m.score += int64(n) * c.score; c.waits {
		m.waits += n
	}
	rest := c.members
	for range n {
		m.set |= rest & -rest
		rest &= rest - 1
	}
	return m
}

// offer makes the set the best one if it is better than the best so far. What it leaves is
// computed only if that decides.
func (s *setSearch) offer(m merit) {
	if s.found && m.compareSelf(s.champ) < 0 {
		return
	}
	m.left = s.wiring.leftover(s.idle &^ m.set)
	if !s.found || m.compare(s.champ) > 0 {
		s.found, s.champ = true, m
	}
}

// gather returns count of the devices for a node with many devices. It takes them from the
// smallest island of the fastest connection that has as many of them, if there is one.
func (w *wiring) gather(devices []int, count int) []int {
	for l := int(connections) - 1; l >= 0; l-- {
		if island := smallest(w.split(devices, Connection(l)), count); island != nil {
			devices = island
			break
		}
	}
	return w.fill(devices, count, int(connections)-1, nil)
}

// fill adds count of the devices to out. Islands of the connection are taken whole, the largest
// first, until the rest fits into one.
func (w *wiring) fill(devices []int, count, connection int, out []int) []int {
	if connection < 0 {
		return append(out, devices[:count]...)
	}
	islands := w.split(devices, Connection(connection))
	for {
		if island := smallest(islands, count); island != nil {
			return w.fill(island, count, connection-1, out)
		}
		if len(islands) == 0 {
			rest := slices.DeleteFunc(slices.Clone(devices), func(i int) bool { return slices.Contains(out, i) })
			return w.fill(rest, count, connection-1, out)
		}
		k := 0
		for i := range islands {
			if len(islands[i]) > len(islands[k]) {
				k = i
			}
		}
		out, count = append(out, islands[k]...), count-len(islands[k])
		islands = slices.Delete(islands, k, k+1)
	}
}

// split returns the devices of each island of the connection, in the order of the devices.
// Islands with one of the devices are left out.
func (w *wiring) split(devices []int, l Connection) [][]int {
	var out [][]int
	at := map[int16]int{}
	for _, i := range devices {
		number := w.at(i)[l]
		if number == 0 {
			continue
		}
		k, known := at[number]
		if !known {
			k = len(out)
			at[number], out = k, append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	return slices.DeleteFunc(out, func(island []int) bool { return len(island) < 2 })
}

// smallest returns the first of the smallest islands that have at least count devices, and
// nil if there is none.
func smallest(islands [][]int, count int) []int {
	var out []int
	for _, island := range islands {
		if len(island) >= count && (out == nil || len(island) < len(out)) {
			out = island
		}
	}
	return out
}
