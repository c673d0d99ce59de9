package oracle

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// devicesOf returns how many devices of the node a task of the shape requests. A case has
// requests for whole nodes only if all nodes have the same number of devices.
func devicesOf(s *cluster.Shape, n *cluster.Node) int {
	if s.Need.WholeNode {
		return len(n.Devices)
	}
	return s.Need.Devices
}

// claimOn returns what a task of the shape holds of the device if it is placed there.
func claimOn(s *cluster.Shape, i int, d *cluster.Device) cluster.Claim {
	need := &s.Need
	switch {
	case s.Isolation.GPU == cluster.GPUDeviceExclusive || need.Share == 0 && need.Memory == 0:
		return cluster.Claim{Device: i, Milli: cluster.Whole, Memory: d.Memory}
	case need.Share > 0:
		return cluster.Claim{Device: i, Milli: need.Share, Memory: cluster.Bytes(int64(d.Memory) * int64(need.Share) / int64(cluster.Whole))}
	}
	return cluster.Claim{Device: i, Milli: max(1, cluster.Milli(int64(need.Memory)*int64(cluster.Whole)/int64(d.Memory))), Memory: need.Memory}
}

// isSuitable reports whether a task of the shape can hold the device if no other task holds
// it.
func isSuitable(s *cluster.Shape, d *cluster.Device) bool {
	need := &s.Need
	return need.Memory <= d.Memory && (len(need.Products) == 0 || slices.Contains(need.Products, d.Product))
}

// isSupported reports whether the node supports the isolation class of the shape. Shared
// devices need no support.
func isSupported(s *cluster.Shape, n *cluster.Node) bool {
	switch class := s.Isolation.GPU; class {
	case cluster.GPUDeviceExclusive, cluster.GPUSessionExclusive:
		return slices.Contains(n.SupportedIsolation.GPU, class)
	}
	return true
}

// sharing returns which other tasks may hold a device together with a task of the shape:
// "none", the tasks of one session, or "any". All tasks on one device must have the same
// sharing.
func sharing(s *cluster.Shape) string {
	switch iso := s.Isolation; {
	case iso.GPU == cluster.GPUDeviceExclusive, iso.GPU == cluster.GPUSessionExclusive && iso.Session == "":
		return "none"
	case iso.GPU == cluster.GPUSessionExclusive:
		return "session " + iso.Session
	}
	return "any"
}

// sameModel reports whether the devices are equal, apart from what is held of them.
func sameModel(a, b cluster.Device) bool { return a.Product == b.Product && a.Memory == b.Memory }
