package cluster

import (
	"cmp"
	"slices"
	"strings"
)

// normalize sorts the ledgers and computes everything that State derives of the devices:
// their IDs, indexes and resource names, and the sums of the node.
func (n *Node) normalize() {
	n.DeviceResource = cmp.Or(n.DeviceResource, DefaultDeviceResource)
	slices.SortFunc(n.Resources, func(a, b Ledger) int { return strings.Compare(a.Name, b.Name) })
	n.sliced, n.deviceCapacity, n.deviceUsed, n.filled, n.touched = false, 0, 0, 0, 0
	nameDevices(n.Name, n.Devices)
	var reported *DeviceSpec // that of the device before, without what State sets
	for i := range n.Devices {
		d := &n.Devices[i]
		n.sliced = n.sliced || d.Shares != ""
		d.Index = int32(i)
		if i > 0 && d.DeviceSpec == reported {
			d.DeviceSpec = n.Devices[i-1].DeviceSpec
		} else {
			reported = d.DeviceSpec
			d.complete(n.DeviceResource)
			if before := n.Devices[max(0, i-1)].DeviceSpec; *before == *d.DeviceSpec {
				d.DeviceSpec = before
			}
		}
		if d.countsAs(n.DeviceResource) {
			n.deviceCapacity += int64(Whole)
			n.deviceUsed += int64(d.Use.Milli)
		}
		if d.Use.Milli >= Whole {
			n.filled++
		}
		if d.Use.Milli > 0 {
			n.touched++
		}
	}
	n.uniform, n.sample = allAlike(n.Devices), nil // fleet.joinGroup sets the sample
	n.wiring = findWiring(n.Devices)
	updateNodeForeign(n)
}

// complete sets the fields of the spec that State derives from the others. resource is the
// DeviceResource of the node.
func (d *Device) complete(resource string) {
	to := *d.DeviceSpec
	to.Resource, to.Fraction = d.resourceOr(resource), 0
	if d.Profile != "" {
		to.Fraction = FractionOf(d.Product, d.Profile)
	}
	if !isProductResource(to.ProductResource, to.Resource, to.Product) {
		to.ProductResource = ProductResource(to.Resource, to.Product)
	}
	if to != *d.DeviceSpec {
		*d.OwnSpec() = to
	}
}

// allAlike reports whether the devices are equal in everything that a Need looks at,
// except for the selection by ID. If they are idle, a task can then use either all of
// them or none.
func allAlike(devices []Device) bool {
	for i := range devices {
		d, o := &devices[i], &devices[0]
		if d.Memory != o.Memory || d.Reserved != o.Reserved || d.Lost != o.Lost ||
			d.Profile != o.Profile || d.Resource != o.Resource || d.Product != o.Product || d.Type != o.Type {
			return false
		}
	}
	return len(devices) > 0
}

// resourceOr returns the name under which the device is requested and booked: its own
// name, or the name of its MIG profile, or else the given name.
func (d *Device) resourceOr(resource string) string {
	switch {
	case d.Resource != "":
		return d.Resource
	case d.Profile != "":
		return PartitionResource + d.Profile
	}
	return resource
}

// countsAs reports whether the device counts for Node.DeviceCapacity if the resource is
// the node's DeviceResource.
func (d *Device) countsAs(resource string) bool { return !d.Lost && d.Resource == resource }

// nameDevices gives each device without an ID one, by which tasks can select it: for each
// type of device the lowest index that is not in use. A device keeps its ID for as long
// as the node is known, whatever the order in which devices are listed.
func nameDevices(node string, devices []Device) {
	var taken map[DeviceID]bool // nil if no device has an ID yet
	for i := range devices {
		d := &devices[i]
		if d.ID == (DeviceID{}) {
			continue
		}
		if taken == nil {
			taken = map[DeviceID]bool{}
		}
		if d.ID.Node != node || d.ID.Type != d.Type || taken[d.ID] {
			d.ID = DeviceID{}
			continue
		}
		taken[d.ID] = true
	}
	next := map[string]int{}
	for i := range devices {
		d := &devices[i]
		if d.ID != (DeviceID{}) || d.Gone {
			continue
		}
		id := DeviceID{Node: node, Type: d.Type, Index: next[d.Type]}
		for taken[id] {
			id.Index++
		}
		d.ID, next[d.Type] = id, id.Index+1
	}
}
