package tenantadmission

import (
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// exact reports whether the shape's devices cost the same wherever it goes.
func exact(s *cluster.Shape) bool {
	need := &s.Need
	return !need.WholeNode && need.Layers == nil && (need.Share > 0 || need.Memory == 0 || s.Isolation.Exclusive())
}

// least is what the shape's devices cost wherever it goes, in thousandths, and
// under what name; nothing if the cluster has several names for them.
func (p *plugin) least(s *cluster.Shape) (int64, string) {
	need := &s.Need
	if need.None() {
		return 0, ""
	}
	name := p.nameOf(need)
	if name == "" {
		return 0, ""
	}
	count := int64(max(1, need.Devices))
	switch {
	case s.Isolation.Exclusive():
		return count * int64(cluster.Whole), name
	case need.WholeNode:
		return count * int64(need.Milli()), name
	case exact(s):
		return count * int64(need.Milli()), name
	}
	return count, name // of memory nobody takes less than a thousandth
}

// nameOf is the name the need's devices are booked under: the one it asks for,
// or the only one that such devices have.
func (p *plugin) nameOf(need *cluster.Need) string {
	if need.Resource != "" {
		return need.Resource
	}
	name := ""
	kinds := p.state.Kinds()
	for i := range kinds {
		d := &kinds[i]
		if !need.Kind(d) || d.Resource == name {
			continue
		}
		if name != "" {
			return ""
		}
		name = d.Resource
	}
	return name
}

// product reports whether any device that the need may use is of the named
// product, and whether none is of another.
func (p *plugin) product(need *cluster.Need, name string) (some, all bool) {
	kinds := p.state.Kinds()
	all = true
	for i := range kinds {
		if d := &kinds[i]; need.Kind(d) {
			some = some || d.ProductResource == name
			all = all && d.ProductResource == name
		}
	}
	return some, some && all
}

// under reports whether the need's devices all count under the bound, wherever
// they are. The name is that of their resource.
func (p *plugin) under(need *cluster.Need, name, bound string) bool {
	if name == bound || !p.state.Named(bound) {
		return name == bound
	}
	_, all := p.product(need, bound)
	return all
}

// together is what the cheapest of the tasks cost of the resource at least, so many of them.
func (p *plugin) together(tasks []*cluster.Task, count int, name string) cost {
	out := cost{name: name}
	each := make([]int64, len(tasks))
	for i, t := range tasks {
		each[i] = t.Shape.Resources.Of(name)
		if devices, of := p.least(t.Shape); devices > 0 && p.under(&t.Shape.Need, of, name) {
			each[i], out.device = devices, true
		}
	}
	slices.Sort(each)
	for _, v := range each[:count] {
		sum, ok := cluster.AddOverflow(out.most, v)
		if !ok {
			sum = math.MaxInt64
		}
		out.most = sum
	}
	out.least = out.most
	return out
}

// costOn bounds what the shape costs of the resource on the node. Layers that
// take as many devices as they need come with the claims they would make: which
// devices these are may change with their order, but not how many or how full.
func costOn(s *cluster.Shape, n *cluster.Node, name string, layers []cluster.Claim) cost {
	c := cost{name: name}
	if base := s.Resources.Of(name); base > 0 || name == cluster.Memory {
		c.least, c.most = base, base
		if name == cluster.Memory {
			low, high := pot(s, n, layers)
			c.least += low
			c.most += high + spill(s.Need.Layers, layers)
		}
		return c
	}
	need := &s.Need
	var usable, named, takers, low, high int64
	for i := range n.Devices {
		d := &n.Devices[i]
		if !need.Usable(d) {
			continue
		}
		usable++
		if d.Resource != name && d.ProductResource != name {
			continue
		}
		named++
		milli := claim(s, d)
		if low == 0 || milli < low {
			low = milli
		}
		if s.Takes(d) {
			takers++
			high = max(high, milli)
		}
	}
	if named == 0 {
		return c
	}
	c.device = true
	count := int64(need.Devices)
	switch {
	case need.WholeNode: // or with a share, that part of each of its devices
		each := int64(need.Milli())
		if s.Isolation.Exclusive() {
			each = int64(cluster.Whole)
		}
		c.least, c.most = named*each, named*each
		return c
	case count == 0:
		count = int64(len(layers))
	}
	if need.Layers != nil {
		low = 1
	}
	// Devices under other names, or of other products, may be taken instead.
	c.least = max(0, count-(usable-named)) * low
	c.most = min(count, takers) * high
	return c
}

// claim is the most that the shape may hold of the device, in thousandths.
func claim(s *cluster.Shape, d *cluster.Device) int64 {
	need := &s.Need
	memory := int64(need.Memory)
	if l := need.Layers; l != nil {
		memory = min(int64(d.Memory), int64(l.Fixed)+cluster.MulDiv(int64(l.Total), int64(l.Bytes), 1))
	}
	switch {
	case exact(s) && !s.Isolation.Exclusive():
		return int64(need.Milli())
	case s.Isolation.Exclusive() || memory <= 0 || d.Memory <= 0:
		return int64(cluster.Whole)
	}
	return int64(d.Part(cluster.Bytes(memory)))
}

// spill is the most of the node's memory that layers take which are on no device.
func spill(l *cluster.Layers, claims []cluster.Claim) int64 {
	switch {
	case l == nil || !l.Spill:
		return 0
	case claims == nil:
		return int64(l.Total-l.Least) * int64(l.Bytes)
	}
	left := l.Total
	for _, c := range claims {
		left -= c.Layers
	}
	return int64(left) * int64(l.Bytes)
}

// holds is what the job's own tasks hold of the resource by now.
func holds(j *cluster.Job, name string) int64 {
	sum := int64(0)
	for _, t := range j.Tasks() {
		if !t.Runs() && t.Status != cluster.Nominated {
			continue
		}
		sum += t.Holds(name)
	}
	return sum
}
