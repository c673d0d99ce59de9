package explain

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/quantity"
)

// FreeMemoryText returns a sentence that says how much memory is free for a model: on the best
// device, on the best node, and on all devices of the best product. It returns "" if the shape
// is not that of a model, or requests no device.
func FreeMemoryText(s *cluster.State, shape *cluster.Shape) string {
	if !shape.ServesModel() || shape.Need.None() {
		return ""
	}
	var any cluster.Shape // requests nothing, so that FreeUnifiedMemory returns all free unified memory
	var device *cluster.Device
	var node, product string
	var onDevice, onNode, onProduct cluster.Bytes
	var devices int
	products := map[string]cluster.Bytes{}
	for _, n := range s.Nodes() {
		if n.Closed() {
			continue
		}
		unified := any.FreeUnifiedMemory(n)
		sums, counts := map[string]cluster.Bytes{}, map[string]int{}
		for i := range n.Devices {
			d := &n.Devices[i]
			free := min(d.Free(), unified)
			if !shape.Need.Kind(d) || !shape.Need.Selects(d) || free <= 0 || !d.Permits(shape.Isolation) {
				continue
			}
			if free > onDevice {
				device, onDevice = d, free
			}
			before := sums[d.Product]
			sums[d.Product] = min(before+free, unified) // the devices of a node share its unified memory
			counts[d.Product]++
			products[d.Product] += sums[d.Product] - before
			if sums[d.Product] > onNode {
				onNode, node, devices = sums[d.Product], n.Name, counts[d.Product]
			}
			if total := products[d.Product]; total > onProduct {
				onProduct, product = total, d.Product
			}
		}
	}
	if device == nil {
		return "No device that it may use has memory free."
	}
	return fmt.Sprintf("Most memory free now: %s on one device (%s, %s), %s on one node (%s, %s), %s on all %s together.",
		quantity.Memory(onDevice), device.ID, device.Product, quantity.Memory(onNode), node, english.Count(devices, "device"), quantity.Memory(onProduct), product)
}

// ForeignMemoryText returns a sentence that says how much memory is used by processes that Berth
// did not place, on devices that the shape could use. It returns "" if there is none.
func ForeignMemoryText(s *cluster.State, shape *cluster.Shape) string {
	if shape.Need.None() {
		return ""
	}
	var names []string
	var sum cluster.Bytes
	for _, n := range s.Nodes() {
		for i := range n.Devices {
			if d := &n.Devices[i]; d.Foreign > 0 && !n.Closed() && shape.Need.Kind(d) && shape.Need.Selects(d) {
				names = append(names, d.ID.String())
				sum += d.Foreign
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("On %s, %s is used by processes that Berth did not place.", List(names, 3), quantity.Memory(sum))
}
