package cluster

import (
	"cmp"
	"math"
	"slices"
)

// Choose picks devices of the node for a task of the shape, and returns what the task
// would hold of them. Several devices that are connected better are preferred, then
// devices with a higher score, then those that leave better connected devices for other
// tasks (see connected.go), then those with a lower index; score may be nil. It returns false if the node's devices cannot take the
// shape now. A shape that requests no devices gets no claims and true. Choose books
// nothing.
//
// Feasible and Choose share their code, so that Choose finds devices on every node that
// a filter accepts by Feasible.
func (n *Node) Choose(s *Shape, score func(*Device) int64) ([]Claim, bool) {
	if s.Need.None() {
		return nil, true
	}
	return supplyOf(s, n).choose(score)
}

// Feasible reports whether Choose would find devices. It is faster than Choose: in
// simple cases it allocates nothing, and if all devices of the node are held whole it
// does not look at the devices.
func (n *Node) Feasible(s *Shape) bool {
	return n.Unfilled() >= s.Need.Devices && (s.Need.None() || supplyOf(s, n).feasible())
}

func (v supply) feasible() bool {
	if !v.unified && v.s.set().countSuffices() && !v.s.mustMatch() && !v.usesSharedMemory() {
		return v.hasEnough()
	}
	if v.s.set() == (sumSet{}) && v.s.Need.Devices <= maxLargest && !v.unified && !v.n.sliced && v.isOneGroup() {
		return v.hasSum()
	}
	_, ok := v.choose(nil)
	return ok
}

// hasEnough reports whether as many devices as the shape needs can take their part of
// it. It stops when it has found them, and calls Takes only for devices that are partly
// held.
func (v supply) hasEnough() bool {
	s, n := v.s, v.n
	alike := v.devicesAlike()
	if alike && !s.Usable(&n.Devices[0]) {
		return false
	}
	left, spare := s.Need.Devices, s.part().mostHeldByOthers(s)
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Use.Milli > spare {
			continue
		}
		// An idle device that is large enough takes the part; Takes need not be called.
		untouched := d.Use.Leases == 0 && d.Foreign == 0
		if untouched && (alike || s.Usable(d)) || !untouched && s.Takes(d) {
			if left--; left <= 0 {
				return true
			}
		}
	}
	return false
}

// Usable returns how many devices of the node the shape could use if they were idle.
// See Shape.Usable.
func (n *Node) Usable(s *Shape) int {
	if supplyOf(s, n).devicesAlike() {
		if s.Usable(&n.Devices[0]) {
			return len(n.Devices)
		}
		return 0
	}
	count := 0
	for i := range n.Devices {
		if s.Usable(&n.Devices[i]) {
			count++
		}
	}
	return count
}

// choice chooses devices for a shape by how they are connected and by score.
type choice struct {
	supply
	score   func(*Device) int64
	byScore bool // how devices are connected is not considered
}

func (v supply) choose(score func(*Device) int64) ([]Claim, bool) {
	claims, ok := choice{supply: v, score: score}.pick()
	if !ok && v.unified && (score != nil || v.n.wiring != nil) {
		return choice{supply: v, byScore: true}.pick() // the preferred devices may need more unified memory than is free; try those with the lowest indexes
	}
	return claims, ok
}

func (c choice) pick() ([]Claim, bool) {
	claims, ok := c.s.set().choose(c)
	if !ok || !c.claimsFit(claims) {
		return nil, false
	}
	return claims, true
}

// ofOneGroup chooses devices that are all of one group, as the groupRule of the
// shape requires. It tries each group and prefers the one that holds more layers, if layers
// may spill, then the one that needs fewer devices, then the one with better connected devices,
// then the one with the best device, then the first by name.
func (c choice) ofOneGroup() ([]Claim, bool) {
	if c.isOneGroup() {
		return c.preferred(nil)
	}
	var groups []string
	for i := range c.n.Devices {
		if g := c.s.group(&c.n.Devices[i]); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	slices.Sort(groups)
	var best []Claim
	for i := range groups {
		claims, ok := c.preferred(&groups[i])
		if ok && (best == nil || c.better(claims, best)) {
			best = claims
		}
	}
	return best, best != nil
}

// better reports whether the claims a, of one group, are preferred to b, of another.
func (c choice) better(a, b []Claim) bool {
	if on, than := layersOn(a), layersOn(b); on != than {
		return on > than
	}
	if len(a) == len(b) && c.wired() {
		return c.compareConnected(a, b) > 0
	}
	if len(a) != len(b) || c.score == nil {
		return len(a) < len(b)
	}
	return c.highest(a) > c.highest(b)
}

// highest returns the score of the best device that is claimed.
func (c choice) highest(claims []Claim) int64 {
	most := int64(math.MinInt64)
	for i := range claims {
		most = max(most, c.score(&c.n.Devices[claims[i].Device]))
	}
	return most
}

// preferred claims the best of the devices that can take their part of the shape. If
// group is not nil, only devices of that group are considered.
func (c choice) preferred(group *string) ([]Claim, bool) {
	var buffer [16]candidate
	takers := buffer[:0]
	if c.n.uniform && !c.s.Need.Kind(&c.n.Devices[0]) {
		return nil, false
	}
	for i := range c.n.Devices {
		d := &c.n.Devices[i]
		if !c.n.uniform && !c.s.Need.Kind(d) || !c.s.takesOfKind(d) || (group != nil && c.s.group(d) != *group) {
			continue
		}
		t := candidate{device: i}
		if c.score != nil {
			t.score = c.score(d)
		}
		takers = append(takers, t)
	}
	if len(takers) < c.s.Need.Devices || len(takers) == 0 {
		return nil, false
	}
	// The sort is stable, so that devices of equal score stay in the order of their index.
	slices.SortStableFunc(takers, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	var few [16]int
	order := few[:0]
	for _, t := range takers {
		order = append(order, t.device)
	}
	switch {
	case !c.wired() || len(order) <= c.s.Need.Devices:
	case len(c.n.Devices) <= maxExact:
		toFront(order, c.bestConnected(takers))
	default:
		all := slices.Clone(order) // a copy, so that the order stays on the stack on other nodes
		c.gatherFirst(all)
		copy(order, all)
	}
	if set, plain := c.s.set().(countSet); plain {
		return set.claimInOrder(c, order) // a direct call, so that the order stays on the stack
	}
	return c.s.set().claimInOrder(c, slices.Clone(order))
}

// take claims as many devices as the shape needs, in the given order. It may return
// fewer, if devices share memory.
func (c choice) take(order []int) []Claim {
	claims := make([]Claim, 0, c.s.Need.Devices)
	for _, i := range order {
		if len(claims) == c.s.Need.Devices {
			break
		}
		claim := c.claim(i)
		if d := &c.n.Devices[i]; d.Shares != "" && !c.s.holdsWhole() && claim.Memory+claimedThroughOthers(c.n.Devices, d, claims) > d.Free() {
			continue // the memory that it shares is claimed through other replicas already
		}
		claims = append(claims, claim)
	}
	return claims
}

func sortClaims(claims []Claim) {
	slices.SortFunc(claims, func(a, b Claim) int { return a.Device - b.Device })
}
