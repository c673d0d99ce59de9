package cluster

import "math"

// DeviceAsk is what a shape asks of devices, before it has any.
type DeviceAsk struct {
	Amount         // in thousandths, under the name of the devices
	OfGPU   int64  // of slices: what they are of nvidia.com/gpu, for a queue without terms for their name
	Product string // the resource name of the only product that would do, if some queue has terms for it
	Least   int64  // in thousandths: with less than this of devices the shape cannot be placed
}

// DeviceAsk is the most that a device of the shape's kind would give. Of several
// names for such devices it is the one that there are most of.
func (s *State) DeviceAsk(shape *Shape) DeviceAsk {
	if shape.Need.None() {
		return DeviceAsk{}
	}
	there, asks, parts := map[string]int{}, map[string]int64{}, map[string]int64{}
	product, several, least := "", false, int64(math.MaxInt64)
	for _, g := range s.fleet.groups {
		n := g.Nodes[0] // nodes of a group have the same devices
		for i := range n.Devices {
			d := &n.Devices[i]
			if !shape.Need.suits(d) { // which of them are selected is no matter of size
				continue
			}
			there[d.Resource] += len(g.Nodes)
			count, each := shape.count(n, d), shape.ask(n, d)
			asks[d.Resource] = max(asks[d.Resource], count*int64(each))
			if d.Fraction > 0 && d.Resource != DefaultDeviceResource {
				parts[d.Resource] = max(parts[d.Resource], count*d.ofGPU(each))
			}
			least = min(least, shape.least(n, d))
			several = several || product != "" && d.ProductResource != product
			product = d.ProductResource
		}
	}
	var out DeviceAsk
	for name, v := range asks {
		if out.Name == "" || there[name] > there[out.Name] || there[name] == there[out.Name] && name < out.Name {
			out.Amount, out.OfGPU = Amount{name, v}, parts[name]
		}
	}
	if !several && s.Named(product) {
		out.Product = product
	}
	if len(asks) > 0 {
		out.Least = least
	}
	return out
}

// ask is what the shape takes of each of the node's devices that have the device's
// name, if they are all like it.
func (s *Shape) ask(n *Node, d *Device) Milli {
	need := &s.Need
	switch {
	case s.Isolation.Exclusive() || need.whole():
		return Whole
	case need.Layers != nil:
		return min(Whole, d.Part(need.Layers.Fixed+need.Layers.share(need.Layers.Total, s.count(n, d))))
	case need.Share > 0 || need.Memory == 0:
		return need.Milli()
	}
	return d.Part(need.Memory)
}

// least bounds from below what the shape takes of devices if none is larger than
// this one: what is divided among several is rounded down on each.
func (s *Shape) least(n *Node, d *Device) int64 {
	l := s.Need.Layers
	if l == nil || s.Isolation.Exclusive() {
		return s.count(n, d) * int64(s.ask(n, d))
	}
	part := int64(d.Part(l.Fixed + Bytes(l.least())*l.Bytes))
	return max(1, part-int64(len(n.Devices)-1))
}

// count is how many of such devices the shape takes. Layers take as few as hold
// them, if they may.
func (s *Shape) count(n *Node, d *Device) int64 {
	need := &s.Need
	if need.Devices > 0 && !need.WholeNode {
		return int64(need.Devices)
	}
	count := int64(0)
	for i := range n.Devices {
		if n.Devices[i].Resource == d.Resource {
			count++
		}
	}
	if l := need.Layers; l != nil && !need.WholeNode {
		each := int64(max(1, l.Within(d.Memory-d.Reserved)))
		count = min(count, (int64(l.Total)+each-1)/each)
	}
	return max(1, count)
}
