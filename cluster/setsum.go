package cluster

import (
	"cmp"
	"slices"
)

// sumSet is the deviceSet of shapes that request a number of devices, and a minimum for
// the sum of the memory that they hold of these devices.
type sumSet struct{ countSet }

func (sumSet) applies(s *Shape) bool     { return s.Need.SumAtLeast > 0 }
func (sumSet) countSuffices() bool       { return false }
func (sumSet) choiceMatters(*Shape) bool { return true }

func (sumSet) suffice(v supply, claims []Claim) bool {
	return v.totalMemory(claims) >= v.sumOn(claims)
}

// sumOn returns the least memory of the claims together: the most that the need demands on
// any of their products.
func (v supply) sumOn(claims []Claim) Bytes {
	out := v.s.Need.SumAtLeast
	if len(v.s.Need.Sums) == 0 {
		return out
	}
	for _, c := range claims {
		out = max(out, v.s.Need.SumOn(v.n.Devices[c.Device].Product))
	}
	return out
}

func (t sumSet) claimInOrder(c choice, order []int) ([]Claim, bool) {
	claims := c.take(order)
	if len(claims) == c.s.Need.Devices && !t.suffice(c.supply, claims) {
		claims = c.take(largestFirst(c.supply, order)) // the sum of the preferred devices is too small
	}
	sortClaims(claims)
	return claims, len(claims) == c.s.Need.Devices && t.suffice(c.supply, claims)
}

// maxLargest is the most devices that hasSum can compare.
const maxLargest = 16

// hasSum reports whether the largest claims that the node's devices offer come to the sum that
// the shape needs. The devices must be one group, and share memory neither with each other nor
// with the node.
func (v supply) hasSum() bool {
	s, n := v.s, v.n
	if !s.Need.Kind(&n.Devices[0]) {
		return false
	}
	var buffer [maxLargest]Bytes
	largest := buffer[:0] // largest first
	want := max(1, s.Need.Devices)
	for i := range n.Devices {
		d := &n.Devices[i]
		if !s.takesOfKind(d) {
			continue
		}
		_, memory := s.part().claim(s, d, d.Room())
		if len(largest) < want {
			largest = append(largest, memory)
		} else if memory <= largest[want-1] {
			continue
		}
		at := len(largest) - 1
		for ; at > 0 && largest[at-1] < memory; at-- {
			largest[at] = largest[at-1]
		}
		largest[at] = memory
	}
	sum := Bytes(0)
	for _, m := range largest {
		sum += m
	}
	return len(largest) == want && sum >= s.Need.SumOn(n.Devices[0].Product)
}

// largestFirst orders the devices by how much memory each adds to the sum, largest first.
// A whole replica that shares its memory with an earlier device adds nothing, and is put
// at the end.
func largestFirst(v supply, order []int) []int {
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v.claim(b).Memory, v.claim(a).Memory) })
	if !v.n.sliced || !v.s.holdsWhole() {
		return order
	}
	first := onePerMemory(v.n.Devices, order)
	return append(first, slices.DeleteFunc(order, func(i int) bool { return slices.Contains(first, i) })...)
}

func (sumSet) fewest(supply, []*Task) (int, bool) { return 1, true }

func (sumSet) fewestBySummary(*Shape, int, int, int) (int, bool) { return 1, true }
func (sumSet) fitsEmptied(supply) bool                           { return false }

func (sumSet) offered(v survey) int64 { return v.most(max(1, v.s.Need.Devices), claimNow) }

// shortageEmptied works without a copy of the node. Models request sums of very many
// sizes, and a copy of every node for each size would dominate the cost of a session.
func (sumSet) shortageEmptied(v supply) (Shortage, bool) {
	if v.unified || v.n.sliced || v.s.Need.SameLink {
		return Shortage{}, false
	}
	s, want, one := v.s, max(1, v.s.Need.Devices), v.isOneGroup()
	if one && len(v.n.Devices) >= want && s.Usable(&v.n.Devices[0]) { // one device answers for all
		d := &v.n.Devices[0]
		sum := int64(want) * claimIdle(s, d)
		if sum >= int64(s.Need.SumOn(d.Product)) {
			return Shortage{}, true
		}
		return survey{supply: v, kind: len(v.n.Devices)}.sumShortage(want, len(v.n.Devices), sum), true
	}
	var best survey
	most, last := int64(-1), ""
	for i := range v.n.Devices {
		if i > 0 && (one || !s.mustMatch()) {
			break
		}
		group := ""
		if s.mustMatch() {
			group = s.group(&v.n.Devices[i])
		}
		if i > 0 && group == last {
			continue
		}
		last = group
		has := surveyGroup(v, group)
		sum := has.most(want, claimIdle)
		if has.large >= want && sum >= has.needed() {
			return Shortage{}, true
		}
		has.takers = 0 // what is free now must not count
		if most < 0 || best.less(has, want) || !has.less(best, want) && sum > most {
			best, most = has, sum
		}
	}
	if best.kind < want || best.large < want {
		return best.tooFew(want), true
	}
	return best.sumShortage(want, best.large, most), true
}

// claimNow returns the memory that the shape would hold of the device now, and claimIdle
// the memory that it would hold if the device were idle. Both return 0 if the shape
// cannot use the device.
func claimNow(s *Shape, d *Device) int64 {
	if !s.Takes(d) {
		return 0
	}
	_, memory := s.part().claim(s, d, d.Room())
	return int64(memory)
}

func claimIdle(s *Shape, d *Device) int64 {
	if !s.Usable(d) {
		return 0
	}
	_, memory := s.part().claim(s, d, d.Capacity())
	return int64(memory)
}
