package cluster

import (
	"cmp"
	"math"
	"slices"
)

// Choose picks devices of the node for the shape: the best by score, ties to the
// lowest index. Score may be nil. It returns false when the node's devices
// cannot hold the shape; a shape that needs none gets no claims and true.
//
// Feasible and Choose are one piece of code on purpose: what a filter lets
// through, the chooser can place.
func (n *Node) Choose(s *Shape, score func(*Device) int64) ([]Claim, bool) {
	if s.Need.None() {
		return nil, true
	}
	return supplyOf(s, n).choose(score)
}

// Feasible reports whether Choose would find devices. It allocates nothing in the
// plain cases, and says no to a full node without a look at its devices.
func (n *Node) Feasible(s *Shape) bool {
	return n.Unfilled() >= s.Need.Devices && (s.Need.None() || supplyOf(s, n).feasible())
}

func (v supply) feasible() bool {
	if !v.unified && v.s.set().plain() && !v.s.bonded() && !v.shares() {
		return v.enough()
	}
	_, ok := v.choose(nil)
	return ok
}

// enough reports whether as many devices can take the shape's part as it needs. It
// stops when it has found them, and looks closely only at devices that are partly held.
func (v supply) enough() bool {
	s, n := v.s, v.n
	alike := v.alike()
	if alike && !s.Usable(&n.Devices[0]) {
		return false
	}
	left, spare := s.Need.Devices, s.part().spare(s)
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Use.Milli > spare {
			continue
		}
		// An idle device takes every part that it is large enough for.
		untouched := d.Use.Leases == 0 && d.Foreign == 0
		if untouched && (alike || s.Usable(d)) || !untouched && s.Takes(d) {
			if left--; left <= 0 {
				return true
			}
		}
	}
	return false
}

// Usable counts the devices of the kind the shape needs, held or not.
func (n *Node) Usable(s *Shape) int {
	if supplyOf(s, n).alike() {
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

// choice is the choice of devices for a shape, by score.
type choice struct {
	supply
	score func(*Device) int64
}

func (v supply) choose(score func(*Device) int64) ([]Claim, bool) {
	claims, ok := choice{v, score}.pick()
	if !ok && v.unified && score != nil {
		return choice{v, nil}.pick() // the best devices are too much together; others may do
	}
	return claims, ok
}

func (c choice) pick() ([]Claim, bool) {
	claims, ok := c.s.set().choose(c)
	if !ok || !c.affords(claims) {
		return nil, false
	}
	return claims, true
}

// ofOneGroup tries one group of devices at a time. It keeps what holds most layers,
// where they may spill, then what needs the fewest devices, then the group with
// the best device; among equals the name decides.
func (c choice) ofOneGroup() ([]Claim, bool) {
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

// better reports whether one group's claims are to be preferred to another's.
func (c choice) better(a, b []Claim) bool {
	if on, than := layersOn(a), layersOn(b); on != than {
		return on > than
	}
	if len(a) != len(b) || c.score == nil {
		return len(a) < len(b)
	}
	return c.highest(a) > c.highest(b)
}

// highest is the score of the best device that is claimed.
func (c choice) highest(claims []Claim) int64 {
	most := int64(math.MinInt64)
	for i := range claims {
		most = max(most, c.score(&c.n.Devices[claims[i].Device]))
	}
	return most
}

// preferred claims the best of the devices that take the shape's part; of the group,
// if one is given.
func (c choice) preferred(group *string) ([]Claim, bool) {
	type candidate struct {
		device int
		score  int64
	}
	var room [16]candidate
	takers := room[:0]
	for i := range c.n.Devices {
		d := &c.n.Devices[i]
		if !c.s.Takes(d) || (group != nil && c.s.group(d) != *group) {
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
	// A stable sort keeps devices of equal score in index order.
	slices.SortStableFunc(takers, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	order := make([]int, len(takers))
	for i, t := range takers {
		order[i] = t.device
	}
	return c.s.set().lay(c, order)
}

// take claims as many devices as the shape needs, the first ones first.
func (c choice) take(order []int) []Claim {
	claims := make([]Claim, 0, c.s.Need.Devices)
	for _, i := range order {
		if len(claims) == c.s.Need.Devices {
			break
		}
		claim := c.claim(i)
		if d := &c.n.Devices[i]; d.Shares != "" && !c.s.counted() && claim.Memory+claimed(c.n.Devices, d, claims) > d.Free() {
			continue // its siblings take what it has
		}
		claims = append(claims, claim)
	}
	return claims
}

func sortClaims(claims []Claim) {
	slices.SortFunc(claims, func(a, b Claim) int { return a.Device - b.Device })
}
