package cluster

// wholeNodeSet is the deviceSet of shapes that request all devices of a node.
type wholeNodeSet struct{ countSet }

func (wholeNodeSet) applies(s *Shape) bool { return s.Need.WholeNode }
func (wholeNodeSet) countSuffices() bool   { return false }
func (wholeNodeSet) hasSingleChoice() bool { return true }
func (wholeNodeSet) sized() bool           { return false }

func (wholeNodeSet) choiceMatters(s *Shape) bool {
	return s.Need.SumAtLeast > 0 || countSet{}.choiceMatters(s)
}

func (t wholeNodeSet) choose(c choice) ([]Claim, bool) {
	left := c.freeUnified()
	claims := make([]Claim, 0, len(c.n.Devices))
	for i := range c.n.Devices {
		d := &c.n.Devices[i]
		if d.Lost {
			continue
		}
		if !c.s.Takes(d) {
			return nil, false
		}
		claim := c.claim(i)
		if c.unified && c.s.holdsWhole() { // whole devices together hold no more than the unified memory
			claim.Memory = min(claim.Memory, left)
			left -= claim.Memory
		}
		claims = append(claims, claim)
	}
	return claims, len(claims) > 0 && len(claims) >= c.s.Need.Devices && t.suffice(c.supply, claims)
}

func (wholeNodeSet) suffice(v supply, claims []Claim) bool { return sumSet{}.suffice(v, claims) }

func (wholeNodeSet) wanted(s *Shape, there int) int { return max(1, s.Need.Devices, there) }

func (wholeNodeSet) maxTasks(_ *Shape, parts int64) int64 { return min(parts, 1) }

func (wholeNodeSet) fewest(v supply, leaving []*Task) (int, bool) {
	if v.s.Need.SumAtLeast > 0 {
		return 1, true
	}
	return countSet{}.fewest(v, leaving)
}

func (wholeNodeSet) fewestBySummary(s *Shape, unfilled, held, widest int) (int, bool) {
	if s.Need.SumAtLeast > 0 {
		return 1, true
	}
	return countSet{}.fewestBySummary(s, unfilled, held, widest)
}

func (wholeNodeSet) chargedDevices(v supply, d *Device) int64 { return max(1, countNamed(v.n, d)) }

// countNamed returns the number of devices of the node that have the same resource name as
// the device.
func countNamed(n *Node, d *Device) int64 {
	count := int64(0)
	for i := range n.Devices {
		if n.Devices[i].Resource == d.Resource {
			count++
		}
	}
	return count
}

func (wholeNodeSet) load(_ *Shape, _ *Device, capacity int64) int64 { return capacity }

// fitsEmptied reports whether all devices of the node are usable and are requested whole:
// the empty node then has room for the shape.
func (wholeNodeSet) fitsEmptied(v supply) bool {
	devices := len(v.n.Devices)
	return v.s.holdsWhole() && v.s.Need.SumAtLeast == 0 && devices > 0 && devices >= v.s.Need.Devices && v.n.Usable(v.s) == devices
}

func (wholeNodeSet) shortage(v supply) Shortage {
	has := surveyGroup(v, "")
	working := 0
	for i := range v.n.Devices {
		if !v.n.Devices[i].Lost {
			working++
		}
	}
	all := v.s.Wanted(working)
	switch {
	case has.kind < all || has.large < all: // some devices are missing, too small, or of another kind
		return has.tooFew(all)
	case has.takers < all: // other tasks hold some of the devices
		return countShortage(LackWholeNode, all, has.takers)
	}
	return has.shortTogether(all)
}
