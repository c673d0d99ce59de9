package cluster

import (
	"iter"
	"slices"
)

// Choices yields the different ways to place the shape on the node's devices, best
// first. The first is the one that Choose returns. Devices of the same product and
// memory of which the same is held are interchangeable, unless others tell them apart, and
// ways that differ only in them are yielded once.
func (n *Node) Choices(s *Shape, score func(*Device) int64, others Distinctions) iter.Seq[[]Claim] {
	return func(yield func([]Claim) bool) {
		first, ok := n.Choose(s, score)
		if !ok || !yield(first) || s.Need.None() || s.set().hasSingleChoice() {
			return
		}
		c := choice{supply: supplyOf(s, n), score: score}
		combine(c.interchangeableGroups(others), make([]int, 0, s.Need.Devices), s.Need.Devices, func(devices []int) bool {
			claims := c.claims(devices)
			return claims == nil || c.equivalent(claims, first, others) || yield(claims)
		})
	}
}

// Distinctions are why other tasks may not take one device instead of another of which the
// same is held.
type Distinctions struct {
	Named []DeviceID // devices that tasks select by ID
	Links bool       // tasks require one NVLink domain
}

// interchangeableGroups returns the indexes of the devices that can take their part of
// the shape, grouped by interchangeable devices, the group with the best score first.
func (c choice) interchangeableGroups(others Distinctions) [][]int {
	var groups [][]int
	devices := c.n.Devices
	for i := range devices {
		d := &devices[i]
		if !c.s.Takes(d) {
			continue
		}
		k := slices.IndexFunc(groups, func(g []int) bool { return c.interchangeable(&devices[g[0]], d, others) })
		if k < 0 {
			k = len(groups)
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], i)
	}
	if c.score != nil {
		slices.SortStableFunc(groups, func(a, b []int) int {
			return int(min(1, max(-1, c.score(&devices[b[0]])-c.score(&devices[a[0]]))))
		})
	}
	return groups
}

// interchangeable reports whether it makes no difference which of the two devices is
// taken.
func (c choice) interchangeable(d, o *Device, others Distinctions) bool {
	if d != o && (others.Links && d.Link != o.Link || slices.Contains(others.Named, d.ID) || slices.Contains(others.Named, o.ID)) || c.s.mustMatch() && c.s.group(d) != c.s.group(o) {
		return false
	}
	return d.Type == o.Type && d.Shares == o.Shares && d.Product == o.Product && d.Profile == o.Profile && d.Resource == o.Resource && d.Memory == o.Memory && d.Reserved == o.Reserved && d.Foreign == o.Foreign && d.Use.equal(o.Use)
}

// combine calls yield with each way to add left devices to those that are taken. Ways
// with more devices of the first group are tried first. It stops and returns false
// when yield returns false.
func combine(groups [][]int, taken []int, left int, yield func([]int) bool) bool {
	if left == 0 {
		return yield(taken)
	}
	if len(groups) == 0 {
		return true
	}
	for count := min(left, len(groups[0])); count >= 0; count-- {
		if !combine(groups[1:], append(taken, groups[0][:count]...), left-count, yield) {
			return false
		}
	}
	return true
}

// claims returns what a task of the shape holds of the devices. It returns nil if the
// devices cannot take the shape together.
func (c choice) claims(devices []int) []Claim {
	claims := make([]Claim, 0, len(devices))
	mustMatch := c.s.mustMatch()
	for _, i := range devices {
		if mustMatch && c.s.group(&c.n.Devices[i]) != c.s.group(&c.n.Devices[devices[0]]) {
			return nil
		}
		claims = append(claims, c.claim(i))
	}
	if !c.s.set().suffice(c.supply, claims) || !c.claimsFit(claims) {
		return nil
	}
	sortClaims(claims)
	return claims
}

// equivalent reports whether two ways differ only in which of several interchangeable
// devices they take.
func (c choice) equivalent(a, b []Claim, others Distinctions) bool {
	if len(a) != len(b) {
		return false
	}
	devices, rest := c.n.Devices, slices.Clone(b)
	for _, x := range a {
		i := slices.IndexFunc(rest, func(o Claim) bool { return c.interchangeable(&devices[x.Device], &devices[o.Device], others) })
		if i < 0 {
			return false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return true
}
