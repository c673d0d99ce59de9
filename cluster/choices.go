package cluster

import (
	"iter"
	"slices"
)

// Choices yields the ways to hold the shape on the node's devices that really
// differ, best first: the one that Choose takes, then others. Devices of the same
// make that are held alike are one choice, unless they are among those that
// others select by name.
func (n *Node) Choices(s *Shape, score func(*Device) int64, named []DeviceID) iter.Seq[[]Claim] {
	return func(yield func([]Claim) bool) {
		first, ok := n.Choose(s, score)
		if !ok || !yield(first) || s.Need.None() || s.set().single() {
			return
		}
		c := choice{supplyOf(s, n), score}
		combine(c.kinds(named), make([]int, 0, s.Need.Devices), s.Need.Devices, func(devices []int) bool {
			claims := c.claims(devices)
			return claims == nil || c.alike(claims, first, named) || yield(claims)
		})
	}
}

// kinds are the devices that take the shape, those alike together, best first.
func (c choice) kinds(named []DeviceID) [][]int {
	var kinds [][]int
	devices := c.n.Devices
	for i := range devices {
		d := &devices[i]
		if !c.s.Takes(d) {
			continue
		}
		k := slices.IndexFunc(kinds, func(k []int) bool { return c.like(&devices[k[0]], d, named) })
		if k < 0 {
			k = len(kinds)
			kinds = append(kinds, nil)
		}
		kinds[k] = append(kinds[k], i)
	}
	if c.score != nil {
		slices.SortStableFunc(kinds, func(a, b []int) int {
			return int(min(1, max(-1, c.score(&devices[b[0]])-c.score(&devices[a[0]]))))
		})
	}
	return kinds
}

// like reports whether it makes no difference which of the two is taken.
func (c choice) like(d, o *Device, named []DeviceID) bool {
	if d != o && (slices.Contains(named, d.ID) || slices.Contains(named, o.ID)) || c.s.bonded() && c.s.group(d) != c.s.group(o) {
		return false
	}
	return d.Type == o.Type && d.Shares == o.Shares && d.Product == o.Product && d.Profile == o.Profile && d.Resource == o.Resource && d.Memory == o.Memory && d.Reserved == o.Reserved && d.Foreign == o.Foreign && d.Use == o.Use
}

// combine tries the ways to take so many devices, the most of the first
// kind first, until yield answers false.
func combine(kinds [][]int, taken []int, left int, yield func([]int) bool) bool {
	if left == 0 {
		return yield(taken)
	}
	if len(kinds) == 0 {
		return true
	}
	for count := min(left, len(kinds[0])); count >= 0; count-- {
		if !combine(kinds[1:], append(taken, kinds[0][:count]...), left-count, yield) {
			return false
		}
	}
	return true
}

// claims is what the shape holds of the devices; nil where together they will not do.
func (c choice) claims(devices []int) []Claim {
	claims := make([]Claim, 0, len(devices))
	bonded := c.s.bonded()
	for _, i := range devices {
		if bonded && c.s.group(&c.n.Devices[i]) != c.s.group(&c.n.Devices[devices[0]]) {
			return nil
		}
		claims = append(claims, c.claim(i))
	}
	if !c.s.set().met(c.supply, claims) || !c.affords(claims) {
		return nil
	}
	sortClaims(claims)
	return claims
}

// alike reports whether two ways differ in nothing but which of equal devices they take.
func (c choice) alike(a, b []Claim, named []DeviceID) bool {
	if len(a) != len(b) {
		return false
	}
	devices, rest := c.n.Devices, slices.Clone(b)
	for _, x := range a {
		i := slices.IndexFunc(rest, func(o Claim) bool { return c.like(&devices[x.Device], &devices[o.Device], named) })
		if i < 0 {
			return false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return true
}
