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
	claims, ok := n.pick(s, score)
	if !ok && n.Unified && score != nil {
		return n.pick(s, nil) // the best devices are too much together; others may do
	}
	return claims, ok
}

func (n *Node) pick(s *Shape, score func(*Device) int64) (claims []Claim, ok bool) {
	need := &s.Need
	switch {
	case need.WholeNode:
		claims, ok = n.chooseAll(s)
	case need.SameProduct:
		claims, ok = n.chooseUniform(s, score)
	default:
		claims, ok = n.choose(s, score, nil)
	}
	return claims, ok && n.affords(s, claims)
}

// affords reports whether the node's own memory has room for what the claims
// take of it: on unified memory, all of them.
func (n *Node) affords(s *Shape, claims []Claim) bool {
	if !n.shareable(s, claims) {
		return false
	}
	if !n.Unified {
		return true // what spills was looked at when layers were laid out
	}
	if s.counted() && s.Need.Layers == nil && slices.ContainsFunc(claims, func(c Claim) bool { return c.Memory < s.Need.Memory }) {
		return false // the device has as much, and the pot does not
	}
	l := n.Ledger(Memory)
	return l != nil && l.Free() >= s.Resources.Of(Memory)+n.host(s, claims, Memory)
}

// pot is the unified memory that the shape's claims can have; without one it is
// more than any device has.
func (n *Node) pot(s *Shape) Bytes {
	if !n.Unified {
		return MaxDeviceMemory
	}
	if l := n.Ledger(Memory); l != nil {
		return max(0, Bytes(l.Free()-s.Resources.Of(Memory)))
	}
	return 0
}

// Feasible reports whether Choose would find devices. It allocates nothing in the plain cases.
func (n *Node) Feasible(s *Shape) bool {
	need := &s.Need
	switch {
	case need.None():
		return true
	case need.WholeNode, need.SameProduct, n.Unified, n.SharesMemory(s), need.Layers != nil, need.SumAtLeast > 0:
		_, ok := n.Choose(s, nil)
		return ok
	}
	return n.enough(s)
}

// enough reports whether as many devices can take the shape's claim as it needs.
// It stops when it has found them, and looks closely only at devices that are partly held.
func (n *Node) enough(s *Shape) bool {
	need := &s.Need
	most := Milli(0) // that others may hold of a device
	switch {
	case need.Share > 0:
		most = Whole - need.Share
	case need.Memory > 0:
		most = Whole - 1
	}
	left := need.Devices
	if n.Unfilled() < left {
		return false // without a look at them
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Use.Milli > most {
			continue
		}
		// An idle device takes every need that it is the kind for.
		untouched := d.Use.Leases == 0 && d.Foreign == 0
		if untouched && need.Usable(d) || !untouched && s.Takes(d) {
			if left--; left <= 0 {
				return true
			}
		}
	}
	return false
}

// Takers counts the devices that can take the shape's claim now.
func (n *Node) Takers(s *Shape) int {
	count := 0
	for i := range n.Devices {
		if s.Takes(&n.Devices[i]) {
			count++
		}
	}
	return count
}

// Alike reports whether the shape can use all of the node's devices or none, if they
// are idle, so that one can be asked about for all.
func (n *Node) Alike(s *Shape) bool { return n.uniform && len(s.Need.Selected) == 0 }

// Usable counts the devices of the kind the shape needs, held or not.
func (n *Node) Usable(s *Shape) int {
	if n.Alike(s) {
		if s.Need.Usable(&n.Devices[0]) {
			return len(n.Devices)
		}
		return 0
	}
	count := 0
	for i := range n.Devices {
		if s.Need.Usable(&n.Devices[i]) {
			count++
		}
	}
	return count
}

func (n *Node) chooseAll(s *Shape) ([]Claim, bool) {
	need, left := &s.Need, n.pot(s)
	claims := make([]Claim, 0, len(n.Devices))
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Lost {
			continue
		}
		if !s.Takes(d) {
			return nil, false
		}
		claim := n.claim(s, i)
		if n.Unified && s.counted() { // all of the pot, as far as it goes
			claim.Memory = min(claim.Memory, left)
			left -= claim.Memory
		}
		claims = append(claims, claim)
	}
	if len(claims) == 0 || len(claims) < need.Devices || n.together(s, claims) < need.SumAtLeast {
		return nil, false
	}
	return claims, true
}

// chooseUniform tries one product at a time. It keeps what holds most layers,
// where they may spill, then what needs the fewest devices, then the product with
// the best device; among equals the name decides.
func (n *Node) chooseUniform(s *Shape, score func(*Device) int64) ([]Claim, bool) {
	var products []string
	for i := range n.Devices {
		if p := n.Devices[i].Product; !slices.Contains(products, p) {
			products = append(products, p)
		}
	}
	slices.Sort(products)
	var best []Claim
	for _, p := range products {
		claims, ok := n.choose(s, score, &p)
		if ok && (best == nil || n.better(claims, best, score)) {
			best = claims
		}
	}
	return best, best != nil
}

// better reports whether one product's claims are to be preferred to another's.
func (n *Node) better(a, b []Claim, score func(*Device) int64) bool {
	if on, than := layersOn(a), layersOn(b); on != than {
		return on > than
	}
	if len(a) != len(b) || score == nil {
		return len(a) < len(b)
	}
	return n.highest(a, score) > n.highest(b, score)
}

// highest is the score of the best device that is claimed.
func (n *Node) highest(claims []Claim, score func(*Device) int64) int64 {
	most := int64(math.MinInt64)
	for i := range claims {
		most = max(most, score(&n.Devices[claims[i].Device]))
	}
	return most
}

func layersOn(claims []Claim) int {
	on := 0
	for i := range claims {
		on += claims[i].Layers
	}
	return on
}

func (n *Node) choose(s *Shape, score func(*Device) int64, product *string) ([]Claim, bool) {
	need := &s.Need
	type candidate struct {
		device int
		score  int64
	}
	var room [16]candidate
	takers := room[:0]
	for i := range n.Devices {
		d := &n.Devices[i]
		if !s.Takes(d) || (product != nil && d.Product != *product) {
			continue
		}
		c := candidate{device: i}
		if score != nil {
			c.score = score(d)
		}
		takers = append(takers, c)
	}
	if len(takers) < need.Devices || len(takers) == 0 {
		return nil, false
	}
	// A stable sort keeps devices of equal score in index order.
	slices.SortStableFunc(takers, func(a, b candidate) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	order := make([]int, len(takers))
	for i, c := range takers {
		order[i] = c.device
	}
	if need.Layers != nil {
		return n.chooseLayers(s, order)
	}
	claims := n.take(s, order)
	if len(claims) == need.Devices && n.together(s, claims) < need.SumAtLeast {
		claims = n.take(s, n.largest(s, order)) // the preferred devices are too small together
	}
	if len(claims) < need.Devices || n.together(s, claims) < need.SumAtLeast {
		return nil, false
	}
	slices.SortFunc(claims, func(a, b Claim) int { return a.Device - b.Device })
	return claims, true
}

// take claims as many devices as the shape needs, the first ones first.
func (n *Node) take(s *Shape, order []int) []Claim {
	claims := make([]Claim, 0, s.Need.Devices)
	for _, i := range order {
		if len(claims) == s.Need.Devices {
			break
		}
		claim := n.claim(s, i)
		if d := &n.Devices[i]; d.Shares != "" && !s.counted() && claim.Memory+n.claimed(d, claims) > d.Free() {
			continue // its siblings take what it has
		}
		claims = append(claims, claim)
	}
	return claims
}

// largest orders the devices by what they add to a sum: a replica that shares its
// memory with one before it adds nothing.
func (n *Node) largest(s *Shape, order []int) []int {
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(n.claim(s, b).Memory, n.claim(s, a).Memory)
	})
	if !n.sliced || !s.counted() {
		return order
	}
	first := n.apart(order)
	return append(first, slices.DeleteFunc(order, func(i int) bool { return slices.Contains(first, i) })...)
}

// claim is what the shape holds of the device: an exclusive class holds it whole.
func (n *Node) claim(s *Shape, i int) Claim {
	d := &n.Devices[i]
	c := s.Need.claimFor(i, d)
	if s.Isolation.Exclusive() {
		c = Claim{Device: i, Milli: Whole, Memory: d.Room()}
	}
	if n.Unified && s.counted() {
		c.Memory = min(c.Memory, n.pot(s)) // all that there is left to be had
	}
	return c
}
