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
func (v View) DeviceAsk(shape *Shape) DeviceAsk {
	if shape.Need.None() {
		return DeviceAsk{}
	}
	there, asks, parts := map[string]int{}, map[string]int64{}, map[string]int64{}
	product, several, least := "", false, int64(math.MaxInt64)
	set := shape.set()
	for _, g := range v.state.fleet.groups {
		n := g.Nodes[0] // nodes of a group have the same devices
		has := supplyOf(shape, n)
		for i := range n.Devices {
			d := &n.Devices[i]
			if !shape.suits(d) { // which of them are selected is no matter of size
				continue
			}
			there[d.Resource] += len(g.Nodes)
			count, each := set.count(has, d), set.each(has, d)
			asks[d.Resource] = max(asks[d.Resource], count*int64(each))
			if d.Fraction > 0 && d.Resource != DefaultDeviceResource {
				parts[d.Resource] = max(parts[d.Resource], count*d.ofGPU(each))
			}
			least = min(least, set.least(has, d))
			several = several || product != "" && d.ProductResource != product
			product = d.ProductResource
		}
	}
	var out DeviceAsk
	for name, ask := range asks {
		if out.Name == "" || there[name] > there[out.Name] || there[name] == there[out.Name] && name < out.Name {
			out.Amount, out.OfGPU = Amount{name, ask}, parts[name]
		}
	}
	if !several && v.Named(product) {
		out.Product = product
	}
	if len(asks) > 0 {
		out.Least = least
	}
	return out
}
