package cluster

import (
	"cmp"
	"slices"
)

// sum is the set of those that take a number of devices whose memory, or the parts
// that are taken of it, must come to a sum.
type sumSet struct{ number }

func (sumSet) asked(s *Shape) bool { return s.Need.SumAtLeast > 0 }
func (sumSet) plain() bool         { return false }
func (sumSet) matters(*Shape) bool { return true }

func (sumSet) met(v supply, claims []Claim) bool { return v.totalMemory(claims) >= v.s.Need.SumAtLeast }

func (t sumSet) lay(c choice, order []int) ([]Claim, bool) {
	claims := c.take(order)
	if len(claims) == c.s.Need.Devices && !t.met(c.supply, claims) {
		claims = c.take(largestFirst(c.supply, order)) // the preferred devices are too small together
	}
	sortClaims(claims)
	return claims, len(claims) == c.s.Need.Devices && t.met(c.supply, claims)
}

// largest orders the devices by what they add to the sum: a replica that shares its
// memory with one before it adds nothing.
func largestFirst(v supply, order []int) []int {
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v.claim(b).Memory, v.claim(a).Memory) })
	if !v.n.sliced || !v.s.counted() {
		return order
	}
	first := apart(v.n.Devices, order)
	return append(first, slices.DeleteFunc(order, func(i int) bool { return slices.Contains(first, i) })...)
}

func (sumSet) fewest(supply, []*Task) (int, bool) { return 1, true }
func (sumSet) roomy(supply) bool                  { return false }

func (sumSet) gives(v survey) int64 { return v.most(max(1, v.s.Need.Devices), claimNow) }

// empty needs no copy of the node: models request sums in a thousand sizes, and a
// copy of every node for each would cost more than all else.
func (sumSet) empty(v supply) (Shortage, bool) {
	if v.unified || v.n.sliced {
		return Shortage{}, false
	}
	s, want, one := v.s, max(1, v.s.Need.Devices), v.isOneGroup()
	var best survey
	most, last := int64(-1), ""
	for i := range v.n.Devices {
		if i > 0 && (one || !s.bonded()) {
			break
		}
		group := ""
		if s.bonded() {
			group = s.group(&v.n.Devices[i])
		}
		if i > 0 && group == last {
			continue
		}
		last = group
		has := surveyGroup(v, group)
		sum := has.most(want, claimIdle)
		if has.large >= want && sum >= int64(s.Need.SumAtLeast) {
			return Shortage{}, true
		}
		has.takers = 0 // held or not
		if most < 0 || best.less(has, want) || !has.less(best, want) && sum > most {
			best, most = has, sum
		}
	}
	if best.kind < want || best.large < want {
		return best.tooFew(want), true
	}
	return Shortage{Lack: LackBytes, Devices: want, Want: int64(s.Need.SumAtLeast), Have: most}, true
}

// claimNow is the memory that the shape would have of the device, and claimIdle what
// it would have if nothing were held of it.
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
