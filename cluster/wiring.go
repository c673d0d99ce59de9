package cluster

import (
	"slices"
	"strconv"
)

// The devices of a node can be connected at several levels. Devices that are connected at
// a level form an island of that level, such as all GPUs of one NVLink domain. A device is
// in at most one island of each level. This file finds the islands of a node. connected.go
// chooses devices by them.

// Level is how devices of one node are connected. A higher level is a faster connection.
type Level uint8

// The levels, from the slowest to the fastest.
const (
	ByNUMA Level = iota // they are at one NUMA node (Device.NUMA)
	ByPCIe              // they are at one PCIe root (Device.PCIe)
	ByLink              // they are in one NVLink domain, or a domain of a similar network (Device.Link)
	levels
)

// String returns what connects the devices of an island of the level.
func (l Level) String() string { return [...]string{"NUMA node", "PCIe root", "NVLink domain"}[l] }

// islands are the numbers of a device's islands, by level. They count from 1 on each node,
// and 0 means that no island is known.
type islands [levels]int16

// ties returns at which levels two devices are connected, as a bit for each level. The
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
	of      []islands // by device
	fastest Level     // the fastest level with an island of several devices
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
	for l := range levels {
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

// island returns the name of the device's island at the level, and "" if it is not known.
func (d *Device) island(l Level) string {
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

// together reports whether both devices are in one island of the level.
func (l Level) together(d, o *Device) bool {
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

// Connection returns the fastest level at which all the devices are in one island. It
// returns false if there is none, or if there is only one device.
func (n *Node) Connection(claims []Claim) (Level, bool) {
	for l := levels; l > 0 && len(claims) > 1; l-- {
		first := &n.Devices[claims[0].Device]
		if !slices.ContainsFunc(claims[1:], func(c Claim) bool { return !(l - 1).together(first, &n.Devices[c.Device]) }) {
			return l - 1, true
		}
	}
	return 0, false
}

// Island returns the fastest level at which the devices are in one island, and the name of
// that island. If they are in several islands, it returns the fastest level that the node
// has, and no name. It returns false if the node is not Wired, or if there is one device, of
// which nothing is known.
func (n *Node) Island(claims []Claim) (level Level, name string, known bool) {
	if n.wiring == nil || len(claims) == 0 {
		return 0, "", false
	}
	first := &n.Devices[claims[0].Device]
	if level, one := n.Connection(claims); one {
		return level, first.island(level), true
	}
	for l := levels; l > 0 && len(claims) == 1; l-- {
		if name := first.island(l - 1); name != "" {
			return l - 1, name, true
		}
	}
	return n.wiring.fastest, "", len(claims) > 1
}

// Breaks reports whether a task that holds the claims would break an island of which all
// devices are idle: it would take some of them, and leave others. Only islands of the
// fastest level count that the node has. A node that is not Wired counts as one island. The
// claims must not be booked.
func (n *Node) Breaks(claims []Claim) bool {
	return slices.ContainsFunc(claims, func(c Claim) bool {
		if n.wiring != nil && n.wiring.at(c.Device)[n.wiring.fastest] == 0 {
			return false // the device is in no island
		}
		idle, left := n.aroundIsland(c.Device, claims)
		return idle && left
	})
}

// aroundIsland reports whether all devices of the device's island are idle, and whether the
// claims leave some of them.
func (n *Node) aroundIsland(device int, claims []Claim) (idle, left bool) {
	idle = true
	for i := range n.Devices {
		if d := &n.Devices[i]; n.wiring == nil || n.wiring.at(i)[n.wiring.fastest] == n.wiring.at(device)[n.wiring.fastest] {
			idle = idle && !d.Lost && d.canBeTakenWhole()
			left = left || !slices.ContainsFunc(claims, func(c Claim) bool { return c.Device == i })
		}
	}
	return idle, left
}
