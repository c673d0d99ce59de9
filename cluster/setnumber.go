package cluster

// number is the deviceSet of shapes that request a number of devices.
type number struct{}

func (number) asked(*Shape) bool { return true }
func (number) plain() bool       { return true }
func (number) single() bool      { return false }
func (number) sized() bool       { return true }
func (number) open(*Shape) bool  { return false }

// matters is true if the shape takes less than the whole of several devices.
func (number) matters(s *Shape) bool { return s.Need.Devices > 1 && s.part().matters(s) }

func (number) choose(c choice) ([]Claim, bool) {
	if c.s.bonded() {
		return c.ofOneGroup()
	}
	return c.preferred(nil)
}

func (number) lay(c choice, order []int) ([]Claim, bool) {
	claims := c.take(order)
	sortClaims(claims)
	return claims, len(claims) == c.s.Need.Devices
}

func (number) met(supply, []Claim) bool    { return true }
func (number) spill(*Shape, []Claim) Bytes { return 0 }
func (number) maySpill(*Shape) Bytes       { return 0 }
func (number) wanted(s *Shape, _ int) int  { return max(1, s.Need.Devices) }

func (number) tasks(s *Shape, parts int64) int64 { return parts / int64(max(1, s.Need.Devices)) }

func (number) fewest(v supply, leaving []*Task) (int, bool) {
	s, n, widest := v.s, v.n, 0
	for _, t := range leaving {
		widest = max(widest, len(t.Claims))
	}
	if s.Need.Devices == 0 || widest == 0 || n.sliced {
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
	if s.part().empties() {
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

func (number) count(v supply, _ *Device) int64 { return int64(v.s.Need.Devices) }
func (number) each(v supply, d *Device) Milli  { return v.s.part().price(v.s, d) }

func (number) least(v supply, d *Device) int64 {
	return v.s.set().count(v, d) * int64(v.s.part().price(v.s, d))
}

func (number) load(s *Shape, d *Device, _ int64) int64 {
	return int64(s.Need.Devices) * int64(s.part().price(s, d))
}

func (number) roomy(v supply) bool {
	return !v.shares() && !v.s.bonded() && v.n.Usable(v.s) >= v.s.Need.Devices
}

func (number) empty(supply) (Shortage, bool) { return Shortage{}, false }

func (number) gives(survey) int64 { return 0 }

func (t number) short(v supply) Shortage {
	has, want := surveyOf(v), max(1, v.s.Need.Devices)
	if lack := has.tooFew(want); lack.Lack != LackNothing {
		return lack
	}
	return has.shortTogether(want)
}
