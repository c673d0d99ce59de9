package cluster

// wholeNodeSet is the deviceSet of shapes that request all devices of a node.
type wholeNodeSet struct{ number }

func (wholeNodeSet) asked(s *Shape) bool { return s.Need.WholeNode }
func (wholeNodeSet) plain() bool         { return false }
func (wholeNodeSet) single() bool        { return true }
func (wholeNodeSet) sized() bool         { return false }

func (wholeNodeSet) matters(s *Shape) bool { return s.Need.SumAtLeast > 0 || number{}.matters(s) }

func (t wholeNodeSet) choose(c choice) ([]Claim, bool) {
	left := c.pot()
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
		if c.unified && c.s.counted() { // whole devices together hold no more than the unified memory
			claim.Memory = min(claim.Memory, left)
			left -= claim.Memory
		}
		claims = append(claims, claim)
	}
	return claims, len(claims) > 0 && len(claims) >= c.s.Need.Devices && t.met(c.supply, claims)
}

func (wholeNodeSet) met(v supply, claims []Claim) bool { return sumSet{}.met(v, claims) }

func (wholeNodeSet) wanted(s *Shape, there int) int { return max(1, s.Need.Devices, there) }

func (wholeNodeSet) tasks(_ *Shape, parts int64) int64 { return min(parts, 1) }

func (wholeNodeSet) fewest(v supply, leaving []*Task) (int, bool) {
	if v.s.Need.SumAtLeast > 0 {
		return 1, true
	}
	return number{}.fewest(v, leaving)
}

func (wholeNodeSet) count(v supply, d *Device) int64 { return max(1, named(v.n, d)) }

// named returns the number of devices of the node that have the same resource name as
// the device.
func named(n *Node, d *Device) int64 {
	count := int64(0)
	for i := range n.Devices {
		if n.Devices[i].Resource == d.Resource {
			count++
		}
	}
	return count
}

func (wholeNodeSet) load(_ *Shape, _ *Device, capacity int64) int64 { return capacity }

// roomy reports whether all devices of the node are usable and are requested whole: the
// empty node then has room for the shape.
func (wholeNodeSet) roomy(v supply) bool {
	devices := len(v.n.Devices)
	return v.s.counted() && v.s.Need.SumAtLeast == 0 && devices > 0 && devices >= v.s.Need.Devices && v.n.Usable(v.s) == devices
}

func (wholeNodeSet) short(v supply) Shortage {
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
		return short(LackNode, all, has.takers)
	}
	return has.shortTogether(all)
}
