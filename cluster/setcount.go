package cluster

// countSet is the deviceSet of shapes that request a number of devices.
type countSet struct{}

func (countSet) applies(*Shape) bool      { return true }
func (countSet) countSuffices() bool      { return true }
func (countSet) hasSingleChoice() bool    { return false }
func (countSet) sized() bool              { return true }
func (countSet) hasOpenCount(*Shape) bool { return false }

// choiceMatters is true if the shape takes a part of each of several devices. A share of
// 100% counts as a part.
func (countSet) choiceMatters(s *Shape) bool { return s.Need.Devices > 1 && s.part().choiceMatters(s) }

func (countSet) choose(c choice) ([]Claim, bool) {
	if c.s.mustMatch() {
		return c.ofOneGroup()
	}
	return c.preferred(nil)
}

func (countSet) claimInOrder(c choice, order []int) ([]Claim, bool) {
	claims := c.take(order)
	sortClaims(claims)
	return claims, len(claims) == c.s.Need.Devices
}

func (countSet) suffice(supply, []Claim) bool { return true }
func (countSet) spill(*Shape, []Claim) Bytes  { return 0 }
func (countSet) maySpill(*Shape) Bytes        { return 0 }
func (countSet) wanted(s *Shape, _ int) int   { return max(1, s.Need.Devices) }

func (countSet) maxTasks(s *Shape, parts int64) int64 { return parts / int64(max(1, s.Need.Devices)) }

func (countSet) fewest(v supply, leaving []*Task) (int, bool) {
	s, n, widest := v.s, v.n, 0
	for _, t := range leaving {
		widest = max(widest, len(t.Claims))
	}
	if s.Need.Devices == 0 || n.sliced {
		return 1, true
	}
	takes, free := 0, 0
	if n.Unfilled() > 0 {
		for i := range n.Devices {
			if d := &n.Devices[i]; s.Takes(d) {
				takes++
			} else if d.Use.Milli == 0 {
				free++ // it is idle, but the shape cannot use it, so it is not counted as emptied below
			}
		}
	}
	if takes >= s.Need.Devices {
		return 1, true
	}
	if widest == 0 { // evictions free no device
		return 1, !s.part().needsEmpty()
	}
	if s.part().needsEmpty() {
		emptied := 0 // devices that no task would hold if all the tasks left
		for i := range n.Devices {
			held := n.Devices[i].Use.Milli
			for _, t := range leaving {
				for _, c := range t.Claims {
					if c.Device == i {
						held -= c.Milli
					}
				}
			}
			if held <= 0 {
				emptied++
			}
		}
		if emptied-free < s.Need.Devices {
			return 0, false
		}
	}
	return (s.Need.Devices - takes + widest - 1) / widest, true
}

// fewestBySummary assumes that the shape can use every unfilled device, and that evictions
// empty every device that a leaving task holds. Shapes that may share devices get the bound 1:
// fewest does not compare what they need with what the leaving tasks hold.
func (countSet) fewestBySummary(s *Shape, unfilled, held, widest int) (int, bool) {
	want := s.Need.Devices
	if want == 0 || widest == 0 || unfilled >= want || !s.part().needsEmpty() {
		return 1, true
	}
	if unfilled+held < want {
		return 0, false
	}
	return (want - unfilled + widest - 1) / widest, true
}

func (countSet) chargedDevices(v supply, _ *Device) int64  { return int64(v.s.Need.Devices) }
func (countSet) chargePerDevice(v supply, d *Device) Milli { return v.s.part().price(v.s, d) }

func (countSet) leastCharge(v supply, d *Device) int64 {
	return v.s.set().chargedDevices(v, d) * int64(v.s.part().price(v.s, d))
}

func (countSet) load(s *Shape, d *Device, _ int64) int64 {
	return int64(s.Need.Devices) * int64(s.part().price(s, d))
}

func (countSet) fitsEmptied(v supply) bool {
	return !v.usesSharedMemory() && !v.s.mustMatch() && v.n.Usable(v.s) >= v.s.Need.Devices
}

func (countSet) shortageEmptied(supply) (Shortage, bool) { return Shortage{}, false }

func (countSet) offered(survey) int64 { return 0 }

func (t countSet) shortage(v supply) Shortage {
	has, want := surveyOf(v), max(1, v.s.Need.Devices)
	if lack := has.tooFew(want); lack.Lack != LackNothing {
		return lack
	}
	return has.shortTogether(want)
}
