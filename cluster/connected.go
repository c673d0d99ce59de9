package cluster

import (
	"cmp"
	"math/bits"
	"slices"
)

// This file chooses, for a task, the devices of a node that are connected best. Of two sets
// of devices, the better one is the one that
//
//  1. has fewer devices that another task must release first,
//  2. is in one island of a faster connection,
//  3. has more connected pairs of devices, those with the fastest connection counted first,
//  4. has a higher sum of the scores of its devices,
//  5. leaves more sets of 16, 8, 4 and 2 idle devices in one island, the fastest connection and
//     the largest sets counted first,
//  6. leaves more connected pairs of idle devices,
//  7. has lower indexes.
//
// One device alone is as well connected as any other, so that its score decides, and then
// what is left.

// candidate is a device that can take its part of a shape.
type candidate struct {
	device int
	score  int64
}

// maxExact is the most devices of a node for which all sets are compared.
const maxExact = 16

// wired reports whether it makes a difference for the task how its devices are connected.
func (c choice) wired() bool {
	return c.n.wiring != nil && !c.byScore && c.s.Need.Devices > 0 && c.s.Need.Layers == nil && c.s.Need.Partition == ""
}

// bestConnected returns the best set of as many devices as the shape needs. The node must have at
// most maxExact devices, and there must be more takers than the shape needs.
func (c choice) bestConnected(takers []candidate) deviceMask {
	s := setSearch{idle: idleDevices(c.n), wiring: c.n.wiring}
	for _, t := range takers {
		s.add(t, c.mustWait(t.device))
	}
	return s.best(c.s.Need.Devices)
}

// toFront moves the devices of the set to the front of the order, which is otherwise kept.
func toFront(order []int, set deviceMask) {
	at := 0
	for i, d := range order {
		if set&(1<<d) != 0 {
			copy(order[at+1:i+1], order[at:i])
			order[at] = d
			at++
		}
	}
}

// gatherFirst moves as many devices as the shape needs to the front of the order. They are found
// island by island, and may not be the best set.
func (c choice) gatherFirst(order []int) {
	set := c.n.wiring.gather(order, c.s.Need.Devices)
	rest := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return slices.Contains(set, i) })
	copy(order[copy(order, set):], rest)
}

// mustWait reports whether the task would have to wait until another task releases the device.
func (c choice) mustWait(device int) bool {
	return c.s.holdsWhole() && c.n.Devices[device].Use.ReleasingLeases > 0
}

// compareConnected compares two sets of devices of one size by the rules above. The result
// is positive if a is better. Without scores, rule 4 is left out.
func (c choice) compareConnected(a, b []Claim) int {
	return c.merit(a).compare(c.merit(b))
}

func (c choice) merit(claims []Claim) merit {
	m := merit{ties: allTies}
	for i, k := range claims {
		if c.mustWait(k.Device) {
			m.waits++
		}
		if c.score != nil {
			m.score += c.score(&c.n.Devices[k.Device])
		}
		for _, o := range claims[:i] {
			t := c.n.wiring.at(k.Device).ties(c.n.wiring.at(o.Device))
			m.ties &= t
			m.pairs += pairWeight(t)
		}
		if k.Device < maxExact {
			m.set |= 1 << k.Device
		}
	}
	if len(c.n.Devices) <= maxExact {
		m.left = c.n.wiring.leftover(idleDevices(c.n) &^ m.set)
	}
	return m
}

// deviceMask is a set of devices with indexes below maxExact.
type deviceMask uint16

// idleDevices returns the devices that a task could take whole. The node must have at most
// maxExact devices.
func idleDevices(n *Node) deviceMask {
	out := deviceMask(0)
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Lost && d.canBeTakenWhole() {
			out |= 1 << i
		}
	}
	return out
}

// merit is what decides whether a set of devices is better than another.
type merit struct {
	waits int   // how many of the devices another task must release first
	ties  uint8 // the connections of which all of them are in one island
	pairs int64 // the connected pairs, each with its pairWeight
	score int64 // the sum of the scores
	left  leftover
	set   deviceMask
}

// allTies are the ties of a single device.
const allTies = 1<<connections - 1

// compare returns a positive number if m is better than o, and a negative one if it is worse.
func (m merit) compare(o merit) int {
	return cmp.Or(
		m.compareSelf(o),
		slices.Compare(m.left.sets[:], o.left.sets[:]),
		cmp.Compare(m.left.pairs, o.left.pairs),
		cmp.Compare(bits.Reverse16(uint16(m.set)), bits.Reverse16(uint16(o.set))),
	)
}

// compareSelf compares the sets without what they leave.
func (m merit) compareSelf(o merit) int {
	return cmp.Or(cmp.Compare(o.waits, m.waits), cmp.Compare(m.ties, o.ties), cmp.Compare(m.pairs, o.pairs), cmp.Compare(m.score, o.score))
}

// pairWeight returns the weight of a pair of devices with these ties. One pair with a
// faster connection weighs more than all pairs with slower ones together.
func pairWeight(ties uint8) int64 {
	weight := int64(0)
	for l := range connections {
		weight += int64(ties>>l&1) << (20 * l)
	}
	return weight
}

// leftover is what a set of devices leaves for other tasks.
type leftover struct {
	sets  [connections * 4]int8 // how many sets of 16, 8, 4 and 2 devices in one island, the fastest connection first
	pairs int64                 // the connected pairs, each with its pairWeight
}

// leftover returns what the idle devices offer to tasks of several devices.
func (w *wiring) leftover(idle deviceMask) leftover {
	out := leftover{}
	for l := range connections {
		var size [maxExact + 1]int8 // by island
		for rest := idle; rest != 0; rest &= rest - 1 {
			if number := w.at(bits.TrailingZeros16(uint16(rest)))[l]; number > 0 {
				size[number]++
			}
		}
		sets := out.sets[(connections-1-l)*4:]
		for _, k := range size {
			for i := range int8(4) {
				sets[i] += k >> (4 - i)
			}
			out.pairs += int64(k) * int64(k-1) / 2 << (20 * l)
		}
	}
	return out
}
