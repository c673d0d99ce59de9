package explain

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/numeral"
)

// offer says what the cluster has free for a model just now: the best single
// device, the best node, and the best product on all nodes together. "" where it
// is no model, or there is no device for it at all.
func offer(s *cluster.State, shape *cluster.Shape) string {
	if !shape.Served() || shape.Need.None() {
		return ""
	}
	var any cluster.Shape // what the node's own memory has free, whatever the shape requests of it
	var device *cluster.Device
	var node, product string
	var onDevice, onNode, onProduct cluster.Bytes
	var devices int
	products := map[string]cluster.Bytes{}
	for _, n := range s.Nodes() {
		if n.Closed() {
			continue
		}
		pot := any.Pot(n)
		sums, counts := map[string]cluster.Bytes{}, map[string]int{}
		for i := range n.Devices {
			d := &n.Devices[i]
			free := min(d.Free(), pot)
			if !shape.Need.Kind(d) || !shape.Need.Selects(d) || free <= 0 || !d.Permits(shape.Isolation) {
				continue
			}
			if free > onDevice {
				device, onDevice = d, free
			}
			before := sums[d.Product]
			sums[d.Product] = min(before+free, pot) // devices of one pot have it only once
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
		Memory(onDevice), device.ID, device.Product, Memory(onNode), node, numeral.Count(devices, "device"), Memory(onProduct), product)
}

// foreign says what readings found in use on devices that the shape might have had,
// and the books know nothing of.
func foreign(s *cluster.State, shape *cluster.Shape) string {
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
	return fmt.Sprintf("Of %s, %s is used by something that Berth does not know.", List(names, 3), Memory(sum))
}
