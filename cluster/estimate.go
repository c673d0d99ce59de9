package cluster

import "math"

// DeviceEstimate is an estimate of what a queue is charged for the devices of a task that
// is not placed yet.
type DeviceEstimate struct {
	Amount         // the most that may be charged, in thousandths of a device, under the resource name of the devices
	OfGPU   int64  // for MIG slices: the same in thousandths of nvidia.com/gpu, for a queue of which neither quota nor limits nor weights name the resource
	Product string // the product resource, if only one product fits and some queue names it in its quota, limits or weights; otherwise ""
	Least   int64  // the least that may be charged, in thousandths; with less the shape cannot be placed
}

// DeviceEstimate returns what a task of the shape may be charged for devices, judged by all
// nodes of the cluster, idle or not. If devices with different resource names fit, it
// returns the name that most devices have. It is zero if no device fits.
func (v View) DeviceEstimate(shape *Shape) DeviceEstimate {
	if shape.Need.None() {
		return DeviceEstimate{}
	}
	there, asks, parts := map[string]int{}, map[string]int64{}, map[string]int64{}
	product, several, least := "", false, int64(math.MaxInt64)
	set := shape.set()
	for _, g := range v.state.fleet.groups {
		n := g.Nodes[0] // it stands for all nodes of the group, although details may differ (see Group)
		has := supplyOf(shape, n)
		devices, alike := n.Devices, 1
		if n.uniform {
			devices, alike = devices[:1], len(devices) // all devices give the same figures
		}
		for i := range devices {
			d := &devices[i]
			if !shape.suits(d) { // whether the device is among the selected ones is not relevant here
				continue
			}
			there[d.Resource] += alike * len(g.Nodes)
			count, each := set.chargedDevices(has, d), set.chargePerDevice(has, d)
			asks[d.Resource] = max(asks[d.Resource], count*int64(each))
			if d.Fraction > 0 && d.Resource != DefaultDeviceResource {
				parts[d.Resource] = max(parts[d.Resource], count*d.ofGPU(each))
			}
			least = min(least, set.leastCharge(has, d))
			several = several || product != "" && d.ProductResource != product
			product = d.ProductResource
		}
	}
	var out DeviceEstimate
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
