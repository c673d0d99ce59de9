package tenantadmission

import (
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// leastDeviceCost returns the least that the shape's devices cost of the bound on any node, in
// thousandths. It is 0 if they may have several resource names, or count for the bound on
// some nodes only.
func (p *plugin) leastDeviceCost(s *cluster.Shape, b *bound) int64 {
	need := &s.Need
	if need.None() {
		return 0
	}
	name := p.nameOf(need)
	if name == "" {
		return 0
	}
	each, _ := s.Cheapest()
	return int64(max(1, need.Devices)) * p.leastCharge(need, name, b, each)
}

// leastCharge returns the least that a fraction of a device costs of the bound, over all devices
// that the request may use. The name is the resource name of these devices.
func (p *plugin) leastCharge(need *cluster.Need, name string, b *bound, each cluster.Milli) int64 {
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

// nameOf returns the resource name under which the requested devices are counted: the
// requested name, or the only name that such devices have. It is "" if there are several.
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

// hasProduct reports whether any device that the request may use is of the named product,
// and whether all of them are.
func (p *plugin) hasProduct(need *cluster.Need, name string) (some, all bool) {
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

// varies reports whether the bound is on GPUs and the slices that the request may use are
// different fractions of a GPU.
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

// costOfCheapest returns the least that count of the tasks cost of the bound, which is the
// cost of the cheapest ones.
func (p *plugin) costOfCheapest(tasks []*cluster.Task, count int, b *bound) cost {
	out := cost{name: b.name}
	each := make([]int64, len(tasks))
	for i, t := range tasks {
		each[i] = t.Shape.Resources.Of(b.name)
		if devices := p.leastDeviceCost(t.Shape, b); devices > 0 {
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

// costOn returns bounds on what the shape costs of the resource on the node. For layers
// that take as many devices as they need, the claims that they would make are given: the order
// of devices may change which devices these are, but not how many or how full.
func costOn(s *cluster.Shape, n *cluster.Node, b *bound, layers []cluster.Claim) cost {
	name := b.name
	c := cost{name: name}
	if base := s.Resources.Of(name); base > 0 || name == cluster.Memory {
		c.least, c.most = base, base
		if name == cluster.Memory {
			low, high := unifiedCost(s, n, layers)
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
	case need.WholeNode: // all devices of the node, or with a share that fraction of each
		c.least, c.most = all, all
		return c
	case count == 0:
		count = int64(len(layers))
	}
	if !s.Sized() {
		low = 1
	}
	// Devices with other names, or of other products, may be taken instead.
	c.least = max(0, count-(usable-named)) * low
	c.most = min(count, takers) * high
	return c
}

// spill returns the most that the shape takes of the node's memory beside its devices.
func spill(s *cluster.Shape, claims []cluster.Claim) int64 {
	if claims == nil {
		return int64(s.MaySpill())
	}
	return int64(s.Spill(claims))
}

// holds returns what the job's own tasks already count for the bound.
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
