package cluster

// DeviceAsk is what a shape asks of devices, before it has any.
type DeviceAsk struct {
	Amount         // in thousandths, under the name of the devices
	Product string // the resource name of the only product that would do, if some queue has terms for it
}

// DeviceAsk is the most that a device of the shape's kind would give. Of several
// names for such devices it is the one that there are most of.
func (s *State) DeviceAsk(shape *Shape) DeviceAsk {
	if shape.Need.None() {
		return DeviceAsk{}
	}
	there, asks := map[string]int{}, map[string]int64{}
	product, several := "", false
	for _, g := range s.groups {
		n := g.Nodes[0] // nodes of a group have the same devices
		for i := range n.Devices {
			d := &n.Devices[i]
			if !shape.Need.suits(d) { // which of them are selected is no matter of size
				continue
			}
			there[d.Resource] += len(g.Nodes)
			asks[d.Resource] = max(asks[d.Resource], shape.ask(n, d))
			several = several || product != "" && d.ProductResource != product
			product = d.ProductResource
		}
	}
	var out DeviceAsk
	for name, v := range asks {
		if out.Name == "" || there[name] > there[out.Name] || there[name] == there[out.Name] && name < out.Name {
			out.Amount = Amount{name, v}
		}
	}
	if !several && s.Named(product) {
		out.Product = product
	}
	return out
}

// ask is what the shape takes of the node's devices that have the device's name,
// if they are all like it.
func (s *Shape) ask(n *Node, d *Device) int64 {
	need := &s.Need
	count := int64(need.Devices)
	if need.WholeNode {
		count = 0
		for i := range n.Devices {
			if n.Devices[i].Resource == d.Resource {
				count++
			}
		}
	}
	count = max(1, count) // layers take as many as they must: at least one
	switch {
	case s.Isolation.Exclusive() || need.whole():
		return count * int64(Whole)
	case need.Share > 0 || need.Layers != nil || need.Memory == 0:
		return count * int64(need.Milli())
	}
	return count * int64(d.Part(need.Memory))
}
