package tenantadmission

import (
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// least is what the shape's devices cost of the bound wherever it is placed, in
// thousandths; nothing if they have several names, or count under it on some nodes only.
func (p *plugin) least(s *cluster.Shape, b *bound) int64 {
	need := &s.Need
	if need.None() {
		return 0
	}
	name := p.nameOf(need)
	if name == "" {
		return 0
	}
	each, _ := s.Cheapest()
	return int64(max(1, need.Devices)) * p.charge(need, name, b, each)
}

// charge is what so much of a device costs of the bound at least, whichever of those
// that the need may use it is. The name is that of their resource.
func (p *plugin) charge(need *cluster.Need, name string, b *bound, each cluster.Milli) int64 {
	if name == b.name {
		return int64(each)
	}
	least := int64(math.MaxInt64)
	kinds := p.view.Kinds()
	for i := range kinds {
		if d := &kinds[i]; need.Kind(d) {
			least = min(least, b.queue.Charge(d, each, b.name))
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// nameOf is the name the need's devices are booked under: the one it asks for,
// or the only one that such devices have.
func (p *plugin) nameOf(need *cluster.Need) string {
	if need.Resource != "" {
		return need.Resource
	}
	name := ""
	kinds := p.view.Kinds()
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
	kinds := p.view.Kinds()
	all = true
	for i := range kinds {
		if d := &kinds[i]; need.Kind(d) {
			some = some || d.ProductResource == name
			all = all && d.ProductResource == name
		}
	}
	return some, some && all
}

// varies reports whether slices that the need may use are different fractions of a
// GPU, and the bound is on GPUs.
func (p *plugin) varies(need *cluster.Need, b *bound) bool {
	if need.Partition == "" || b.name != cluster.DefaultDeviceResource {
		return false
	}
	first := int64(-1)
	kinds := p.view.Kinds()
	for i := range kinds {
		if d := &kinds[i]; need.Kind(d) {
			v := b.queue.Charge(d, cluster.Whole, b.name)
			if first >= 0 && v != first {
				return true
			}
			first = v
		}
	}
	return false
}

// together is what the cheapest of the tasks cost of the resource at least, so many of them.
func (p *plugin) together(tasks []*cluster.Task, count int, b *bound) cost {
	out := cost{name: b.name}
	each := make([]int64, len(tasks))
	for i, t := range tasks {
		each[i] = t.Shape.Resources.Of(b.name)
		if devices := p.least(t.Shape, b); devices > 0 {
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
func costOn(s *cluster.Shape, n *cluster.Node, b *bound, layers []cluster.Claim) cost {
	name := b.name
	c := cost{name: name}
	if base := s.Resources.Of(name); base > 0 || name == cluster.Memory {
		c.least, c.most = base, base
		if name == cluster.Memory {
			low, high := pot(s, n, layers)
			c.least += low
			c.most += high + spill(s, layers)
		}
		return c
	}
	need := &s.Need
	var usable, named, takers, low, high, all int64
	for i := range n.Devices {
		d := &n.Devices[i]
		if !s.Usable(d) {
			continue
		}
		usable++
		milli := b.queue.Charge(d, s.Price(d), name)
		if milli == 0 {
			continue
		}
		named++
		all += milli
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
		c.least, c.most = all, all
		return c
	case count == 0:
		count = int64(len(layers))
	}
	if !s.Sized() {
		low = 1
	}
	// Devices under other names, or of other products, may be taken instead.
	c.least = max(0, count-(usable-named)) * low
	c.most = min(count, takers) * high
	return c
}

// spill is the most of the node's memory that the shape takes beside its devices.
func spill(s *cluster.Shape, claims []cluster.Claim) int64 {
	if claims == nil {
		return int64(s.MaySpill())
	}
	return int64(s.Spill(claims))
}

// holds is what the job's own tasks count as under the bound by now.
func holds(j *cluster.Job, b *bound) int64 {
	sum := int64(0)
	for _, t := range j.Tasks() {
		if !t.Runs() && t.Status != cluster.Nominated {
			continue
		}
		sum += b.queue.ChargeOf(t, b.name)
	}
	return sum
}
