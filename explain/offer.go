package explain

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// offer says what the cluster has free for a model just now: the best single
// device, the best node, and the best product on all nodes together. "" where it
// is no model, or there is no device for it at all.
func offer(s *cluster.State, shape *cluster.Shape) string {
	if !shape.Served() || shape.Need.None() {
		return ""
	}
	var device *cluster.Device
	var node, product string
	var onNode, onProduct cluster.Bytes
	var devices int
	products := map[string]cluster.Bytes{}
	for _, n := range s.Nodes() {
		if n.Closed() {
			continue
		}
		sums, counts := map[string]cluster.Bytes{}, map[string]int{}
		for i := range n.Devices {
			d := &n.Devices[i]
			if !shape.Need.Kind(d) || !shape.Need.Selects(d) || d.Free() <= 0 || !d.Permits(shape.Isolation) {
				continue
			}
			if device == nil || d.Free() > device.Free() {
				device = d
			}
			sums[d.Product] += d.Free()
			counts[d.Product]++
			products[d.Product] += d.Free()
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
		Memory(device.Free()), device.ID, device.Product, Memory(onNode), node, count(devices, "device"), Memory(onProduct), product)
}
