package cluster

import (
	"iter"
	"slices"
)

// Choices yields the ways to hold the shape on the node's devices that really
// differ, best first: the one that Choose takes, then others. Devices of the same
// make that are held alike are one choice, unless they are among those that
// others select by name. Divisible work and whole nodes come in one way only.
func (n *Node) Choices(s *Shape, score func(*Device) int64, named []DeviceID) iter.Seq[[]Claim] {
	return func(yield func([]Claim) bool) {
		first, ok := n.Choose(s, score)
		if !ok || !yield(first) {
			return
		}
		need := &s.Need
		if need.None() || need.WholeNode || need.Layers != nil {
			return
		}
		kinds := n.kinds(s, score, named)
		n.combine(kinds, make([]int, 0, need.Devices), need.Devices, func(devices []int) bool {
			claims := n.claims(s, devices)
			return claims == nil || n.alike(claims, first, named) || yield(claims)
		})
	}
}

// kinds are the devices that take the shape, those alike together, best first.
func (n *Node) kinds(s *Shape, score func(*Device) int64, named []DeviceID) [][]int {
	var kinds [][]int
	for i := range n.Devices {
		d := &n.Devices[i]
		if !s.Takes(d) {
			continue
		}
		k := slices.IndexFunc(kinds, func(k []int) bool { return n.Devices[k[0]].like(d, named) })
		if k < 0 {
			k = len(kinds)
			kinds = append(kinds, nil)
		}
		kinds[k] = append(kinds[k], i)
	}
	if score != nil {
		slices.SortStableFunc(kinds, func(a, b []int) int {
			return int(min(1, max(-1, score(&n.Devices[b[0]])-score(&n.Devices[a[0]]))))
		})
	}
	return kinds
}

// like reports whether it makes no difference which of the two is taken.
func (d *Device) like(o *Device, named []DeviceID) bool {
	if d != o && (slices.Contains(named, d.ID) || slices.Contains(named, o.ID)) {
		return false
	}
	return d.Type == o.Type && d.Shares == o.Shares && d.Product == o.Product && d.Profile == o.Profile && d.Resource == o.Resource && d.Memory == o.Memory && d.Reserved == o.Reserved && d.Foreign == o.Foreign && d.Use == o.Use
}

// combine goes through the ways to take so many devices, the most of the first
// kind first, until yield answers false.
func (n *Node) combine(kinds [][]int, taken []int, left int, yield func([]int) bool) bool {
	if left == 0 {
		return yield(taken)
	}
	if len(kinds) == 0 {
		return true
	}
	for count := min(left, len(kinds[0])); count >= 0; count-- {
		if !n.combine(kinds[1:], append(taken, kinds[0][:count]...), left-count, yield) {
			return false
		}
	}
	return true
}

// claims is what the shape holds of the devices; nil where together they will not do.
func (n *Node) claims(s *Shape, devices []int) []Claim {
	claims := make([]Claim, 0, len(devices))
	for _, i := range devices {
		if s.Need.SameProduct && n.Devices[i].Product != n.Devices[devices[0]].Product {
			return nil
		}
		claims = append(claims, n.claim(s, i))
	}
	if n.together(s, claims) < s.Need.SumAtLeast || !n.affords(s, claims) {
		return nil
	}
	slices.SortFunc(claims, func(a, b Claim) int { return a.Device - b.Device })
	return claims
}

// alike reports whether two ways differ in nothing but which of equal devices they take.
func (n *Node) alike(a, b []Claim, named []DeviceID) bool {
	if len(a) != len(b) {
		return false
	}
	rest := slices.Clone(b)
	for _, c := range a {
		i := slices.IndexFunc(rest, func(o Claim) bool { return n.Devices[c.Device].like(&n.Devices[o.Device], named) })
		if i < 0 {
			return false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return true
}
