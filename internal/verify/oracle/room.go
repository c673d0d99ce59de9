package oracle

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// freeRoom records what is free on the nodes and what is held of their devices.
type freeRoom struct {
	nodes []*cluster.Node
	rooms []nodeRoom // by node
}

// nodeRoom is what is free on one node.
type nodeRoom struct {
	free    vector // cpu and memory; gpu is always 0
	devices []deviceUse
}

// deviceUse is what is held of one device.
type deviceUse struct {
	milli   cluster.Milli
	memory  cluster.Bytes
	holders int    // how many tasks hold it
	sharing string // of its holders; "" if there are none
}

// location is where a task is placed.
type location struct {
	node   int // index of the node; -1 if the task is not placed
	claims []cluster.Claim
	bound  bool
}

// held returns what the task holds at the location.
func (l location) held(t *task) vector {
	v := vectorOf(t.task.Shape.Resources, 0)
	for _, c := range l.claims {
		v[gpu] += int64(c.Milli)
	}
	return v
}

// newFreeRoom returns the room of empty nodes.
func newFreeRoom(nodes []*cluster.Node) *freeRoom {
	r := &freeRoom{nodes: nodes, rooms: make([]nodeRoom, len(nodes))}
	for i, n := range nodes {
		r.rooms[i].devices = make([]deviceUse, len(n.Devices))
		for _, l := range n.Resources {
			for k := range resourceNames {
				if l.Name == resourceNames[k] {
					r.rooms[i].free[k] = l.Capacity
				}
			}
		}
	}
	return r
}

// take records that the task holds the location or, if sign is -1, that it no longer does.
func (r *freeRoom) take(t *task, at location, sign int64) {
	n := &r.rooms[at.node]
	held := at.held(t)
	held[gpu] = 0
	n.free = n.free.plus(held, -sign)
	for _, c := range at.claims {
		d := &n.devices[c.Device]
		d.milli += cluster.Milli(sign) * c.Milli
		d.memory += cluster.Bytes(sign) * c.Memory
		if d.holders += int(sign); d.holders == 0 {
			d.sharing = ""
		} else {
			d.sharing = sharing(t.task.Shape)
		}
	}
}

// violation returns why the task must not be placed on these devices of the node, or "".
func (r *freeRoom) violation(t *task, n int, claims []cluster.Claim) string {
	node, free := r.nodes[n], r.rooms[n].free
	if t.amounts[cpu] > free[cpu] || t.amounts[memory] > free[memory] {
		return "the node does not have enough cores or memory"
	}
	if len(claims) != devicesOf(t.task.Shape, node) {
		return "it does not hold as many devices as it requests"
	}
	for i, c := range claims {
		if c.Device < 0 || c.Device >= len(node.Devices) || i > 0 && claims[i-1].Device >= c.Device {
			return "a device does not exist or is claimed twice"
		}
		if !r.canHold(t, n, c.Device) {
			return "a device is of another product, too small or held by other tasks"
		}
		if c != claimOn(t.task.Shape, c.Device, &node.Devices[c.Device]) {
			return "a claim differs from its request"
		}
	}
	return ""
}

// canHold reports whether the task can hold the device together with its holders.
func (r *freeRoom) canHold(t *task, n, device int) bool {
	shape, d, used := t.task.Shape, &r.nodes[n].Devices[device], &r.rooms[n].devices[device]
	if !isSuitable(shape, d) || !isSupported(shape, r.nodes[n]) {
		return false
	}
	if used.holders > 0 && (used.sharing != sharing(shape) || used.sharing == "none") {
		return false
	}
	c := claimOn(shape, device, d)
	return used.milli+c.Milli <= cluster.Whole && used.memory+c.Memory <= d.Memory
}

// choices calls visit for every choice of devices of the node for the task, until visit
// returns false. It leaves out choices that differ from another one only in which of
// several equal devices they use.
func (r *freeRoom) choices(t *task, n int, visit func([]cluster.Claim) bool) {
	room := &r.rooms[n]
	if t.amounts[cpu] > room.free[cpu] || t.amounts[memory] > room.free[memory] {
		return
	}
	var chosen []cluster.Claim
	var from func(first int) bool
	from = func(first int) bool {
		if len(chosen) == devicesOf(t.task.Shape, r.nodes[n]) {
			return visit(slices.Clone(chosen))
		}
		for d := first; d < len(room.devices); d++ {
			if !r.canHold(t, n, d) || r.hasEqualDevice(n, first, d) {
				continue
			}
			chosen = append(chosen, claimOn(t.task.Shape, d, &r.nodes[n].Devices[d]))
			more := from(d + 1)
			chosen = chosen[:len(chosen)-1]
			if !more {
				return false
			}
		}
		return true
	}
	from(0)
}

// hasEqualDevice reports whether one of the devices from first up to, but without, the
// given device is equal to it and has the same use.
func (r *freeRoom) hasEqualDevice(n, first, device int) bool {
	devices, used := r.nodes[n].Devices, r.rooms[n].devices
	for d := first; d < device; d++ {
		if used[d] == used[device] && sameModel(devices[d], devices[device]) {
			return true
		}
	}
	return false
}

// areTwins reports whether the nodes are equal and have the same free room.
func (r *freeRoom) areTwins(a, b int) bool {
	x, y := r.nodes[a], r.nodes[b]
	return r.rooms[a].free == r.rooms[b].free && slices.Equal(r.rooms[a].devices, r.rooms[b].devices) &&
		slices.EqualFunc(x.Devices, y.Devices, sameModel) && slices.Equal(x.SupportedIsolation.GPU, y.SupportedIsolation.GPU) &&
		x.Labels[rack] == y.Labels[rack]
}

// freeOfDevices returns what is free of the devices of the node.
func (r *freeRoom) freeOfDevices(n int) (free cluster.Milli) {
	for _, d := range r.rooms[n].devices {
		free += cluster.Whole - d.milli
	}
	return free
}

// total returns what is free on all nodes together.
func (r *freeRoom) total() (free vector) {
	for i := range r.rooms {
		free = free.plus(r.rooms[i].free, +1)
		free[gpu] += int64(r.freeOfDevices(i))
	}
	return free
}

// isFuller reports whether more is held of the devices of choice x than of those of choice y.
func (r *freeRoom) isFuller(n int, x, y []cluster.Claim) bool {
	held := func(claims []cluster.Claim) (held cluster.Milli) {
		for _, c := range claims {
			held += r.rooms[n].devices[c.Device].milli
		}
		return held
	}
	return held(x) > held(y)
}
