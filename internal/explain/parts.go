package explain

import (
	"strings"

	"github.com/berth-project/berth/cluster"
)

// A MIG slice, and a replica that time-slicing or MPS makes of a GPU, is a part of a physical
// device. The parts of one physical device are drawn next to each other, between bars, and a
// slice is as wide as its number of compute slices.

// partSize returns the size of a device that is a part of a physical device: the number of
// compute slices of a MIG slice, or 1 for a replica. It returns 0 for a whole device.
func partSize(n *cluster.Node, i int) int {
	d := &n.Devices[i]
	profile := profileOf(d)
	switch {
	case profile != "":
		return max(1, min(8, digit(profile)))
	case d.Replica:
		return 1
	}
	return 0
}

// digit returns the number of one digit that a MIG profile begins with: 3 for 3g.40gb.
func digit(profile string) int {
	if digits(profile) != 1 {
		return 1
	}
	return int(profile[0] - '0')
}

// profileOf returns the MIG profile of a slice. If slices are requested by count, it is only in
// the name of the product.
func profileOf(d *cluster.Device) string {
	if d.Profile != "" {
		return d.Profile
	}
	if _, profile, ok := strings.Cut(d.Product, "-MIG-"); ok {
		return profile
	}
	return ""
}

// productOf returns the product of a device without a MIG profile. A device without a product is
// named by its resource.
func productOf(d *cluster.Device) string {
	product, _, _ := strings.Cut(d.Product, "-MIG-")
	if product == "" {
		return d.Resource
	}
	return product
}

// islandStarts returns at which devices another island of connected devices begins. If the devices of
// an island are not next to each other, islands are not drawn apart, and nothing begins.
func islandStarts(n *cluster.Node) []bool {
	out, seen, last := make([]bool, len(n.Devices)), map[string]bool{}, ""
	for i := range n.Devices {
		by, name, _ := cluster.IslandOf(n, []cluster.Claim{{Device: i}})
		island := by.String() + " " + name
		if i > 0 && island != last {
			if out[i] = true; seen[island] {
				return make([]bool, len(n.Devices))
			}
		}
		seen[island], last = true, island
	}
	return out
}

// begins reports whether a device is drawn apart from the device before it: it is of another
// kind, or a part of another physical device.
func begins(n *cluster.Node, i int) bool {
	a, b := &n.Devices[i-1], &n.Devices[i]
	if partSize(n, i) > 0 && partSize(n, i-1) > 0 && a.Parent != "" && b.Parent != "" {
		return a.Parent != b.Parent
	}
	return productOf(a) != productOf(b) || (profileOf(a) == "") != (profileOf(b) == "")
}
