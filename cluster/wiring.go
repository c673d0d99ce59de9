package cluster

import (
	"slices"
	"strconv"
)

// Devices of a node that are connected with each other form an island, such as the GPUs of
// one NVLink domain. There are several kinds of connections, and a device is in at most one
// island of each. This file finds the islands of a node. connected.go chooses devices by
// them.

// Connection is a kind of connection between devices of one node.
type Connection uint8

// The kinds of connections, from the slowest to the fastest.
const (
	ByNUMA Connection = iota // they are at one NUMA node (Device.NUMA)
	ByPCIe                   // they are at one PCIe root (Device.PCIe)
	ByLink                   // they are in one NVLink domain, or a domain of a similar network (Device.Link)
	connections
)

// String returns what connects the devices: "NVLink domain".
func (l Connection) String() string { return [...]string{"NUMA node", "PCIe root", "NVLink domain"}[l] }

// islands are the numbers of a device's islands, by kind of connection. They count from 1
// on each node, and 0 means that no island is known.
type islands [connections]int16

// ties returns how two devices are connected, as a bit for each kind of connection. The
// result is greater the faster the connection is.
func (a islands) ties(b islands) uint8 {
	out := uint8(0)
	for l := range a {
		if a[l] != 0 && a[l] == b[l] {
			out |= 1 << l
		}
	}
	return out
}

// wiring is how the devices of a node are connected. It is never changed.
type wiring struct {
	of      []islands  // by device
	fastest Connection // the fastest connection that several devices have
}

// at returns the islands of a device.
func (w *wiring) at(device int) islands {
	if w == nil || device >= len(w.of) {
		return islands{} // a device that was added after the spec of the node
	}
	return w.of[device]
}

// findWiring returns how the devices are connected. It returns nil if all devices are
// connected in the same way, or none are: it then makes no difference which a task takes.
func findWiring(devices []Device) *wiring {
	if alikeConnected(devices) {
		return nil
	}
	w := wiring{of: make([]islands, len(devices))}
	several := false
	for l := range connections {
		sizes, numbers := make([]int, 1), map[string]int16{} // a device without an island has number 0
		for i := range devices {
			name := devices[i].island(l)
			if name == "" {
				continue
			}
			number, known := numbers[name]
			if !known {
				number = int16(len(sizes))
				sizes, numbers[name] = append(sizes, 0), number
			}
			sizes[number]++
			w.of[i][l] = number
		}
		if slices.Max(sizes) > 1 {
			several, w.fastest = true, l
		}
	}
	if !several {
		return nil
	}
	return &w
}

// alikeConnected is a quick check whether all devices are in the same islands.
func alikeConnected(devices []Device) bool {
	var first *Device
	for i := range devices {
		d := &devices[i]
		switch {
		case d.Gone: // it is in no island, and takes no task
		case first == nil:
			first = d
		case d.Link != first.Link || d.PCIe != first.PCIe || d.NUMA != first.NUMA || d.connects() != first.connects():
			return false
		}
	}
	return true
}

// connects reports whether the device can be connected to others for one task, and Berth
// chooses it: it is neither a slice nor a replica, nor chosen by its node.
func (d *Device) connects() bool {
	return d.Profile == "" && d.Parent == "" && !d.Replica && !d.ByCount
}

// island returns the name of the device's island of the connection, and "" if it is not known.
func (d *Device) island(l Connection) string {
	switch {
	case d.Gone || !d.connects():
		return ""
	case l == ByLink:
		return d.Link
	case l == ByPCIe:
		return d.PCIe
	case d.NUMA >= 0:
		return strconv.Itoa(d.NUMA)
	}
	return ""
}

// together reports whether both devices are in one island of the connection.
func (l Connection) together(d, o *Device) bool {
	switch {
	case d.Gone || o.Gone || !d.connects() || !o.connects():
		return false
	case l == ByLink:
		return d.Link != "" && d.Link == o.Link
	case l == ByPCIe:
		return d.PCIe != "" && d.PCIe == o.PCIe
	}
	return d.NUMA >= 0 && d.NUMA == o.NUMA
}

// Wired reports whether some devices of the node are connected better than others, so that
// it makes a difference which devices a task takes.
func (n *Node) Wired() bool { return n.wiring != nil }

// LinkedNodes returns how many nodes are Wired by NVLink or PCIe, and not only by NUMA nodes.
func LinkedNodes(v View) int { return v.state.fleet.linked }

func (w *wiring) linked() bool { return w != nil && w.fastest > ByNUMA }

// ConnectionOf returns the fastest connection of which all the devices are in one island. It
// returns false if there is none, or if there is only one device.
func ConnectionOf(n *Node, claims []Claim) (Connection, bool) {
	for l := connections; l > 0 && len(claims) > 1; l-- {
		first := &n.Devices[claims[0].Device]
		if !slices.ContainsFunc(claims[1:], func(c Claim) bool { return !(l - 1).together(first, &n.Devices[c.Device]) }) {
			return l - 1, true
		}
	}
	return 0, false
}

// IslandOf returns the fastest connection of which the devices are in one island, and the
// name of that island. If they are in several islands, it returns the fastest connection
// that the node has, and no name. It returns false if the node is not Wired, or if there is
// only one device and nothing is known of it.
func IslandOf(n *Node, claims []Claim) (connection Connection, name string, known bool) {
	if n.wiring == nil || len(claims) == 0 {
		return 0, "", false
	}
	first := &n.Devices[claims[0].Device]
	if connection, one := ConnectionOf(n, claims); one {
		return connection, first.island(connection), true
	}
	for l := connections; l > 0 && len(claims) == 1; l-- {
		if name := first.island(l - 1); name != "" {
			return l - 1, name, true
		}
	}
	return n.wiring.fastest, "", len(claims) > 1
}

// BreaksIsland reports whether a task that holds the claims would break an island of which all
// devices are idle: it would take some of them, and leave others. Only islands of the
// node's fastest connection count. A node that is not Wired counts as one island. The claims
// must not be booked.
func BreaksIsland(n *Node, claims []Claim) bool {
	return slices.ContainsFunc(claims, func(c Claim) bool {
		if n.wiring != nil && n.wiring.at(c.Device)[n.wiring.fastest] == 0 {
			return false // the device is in no island
		}
		idle, left := aroundIsland(n, c.Device, claims)
		return idle && left
	})
}

// aroundIsland reports whether all devices of the device's island are idle, and whether the
// claims leave some of them.
func aroundIsland(n *Node, device int, claims []Claim) (idle, left bool) {
	idle = true
	for i := range n.Devices {
		if d := &n.Devices[i]; n.wiring == nil || n.wiring.at(i)[n.wiring.fastest] == n.wiring.at(device)[n.wiring.fastest] {
			idle = idle && !d.Lost && d.canBeTakenWhole()
			left = left || !slices.ContainsFunc(claims, func(c Claim) bool { return c.Device == i })
		}
	}
	return idle, left
}
