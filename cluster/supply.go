package cluster

import "slices"

// This file computes what devices can offer, for every kind of request. A lost device
// offers nothing, nor does a device of another kind, or one on which the isolation of a
// task forbids others. Reserved and foreign memory is not offered. Replicas that
// time-slicing makes of a device share one memory: what is claimed of it through one
// replica is not available through another. A task that requests a whole replica requests
// time on the device and no amount of memory, so that its replicas are only counted. On
// unified memory, everything that is claimed of devices is also memory of the node.

// FreeMilli returns the share of the device that is neither held nor reserved for a task,
// in thousandths.
func (d *Device) FreeMilli() Milli { return Whole - d.Use.Milli }

// Capacity returns the device memory that is offered to tasks if nothing is in use: all
// but what is reserved for the system.
func (d *Device) Capacity() Bytes { return max(0, d.Memory-d.Reserved) }

// Room returns the device memory that tasks can hold together now: Capacity without
// foreign memory.
func (d *Device) Room() Bytes { return max(0, d.Memory-d.Reserved-d.Foreign) }

// Free returns the device memory that is neither held, nor reserved, nor foreign. It is
// negative if more is in use than the device has.
func (d *Device) Free() Bytes { return d.Room() - d.Use.Memory - d.Use.Beside }

// InStep returns how much device memory is free for a task that takes equal shares of the
// device's memory and of its time. This is the free memory, or the memory that corresponds
// to the free share of the device (FreeMilli), whichever is less. For example, if half of
// the memory is free and a quarter of the device, it is a quarter of the memory.
func (d *Device) InStep() Bytes {
	return min(d.Free(), d.Of(max(0, d.FreeMilli())))
}

// negligibleForeign is the most foreign memory with which a device can still be held
// whole, or in a share that is larger than what is left. Drivers and displays use some hundred MiB of an idle device.
const negligibleForeign Bytes = 1 << 30

// canBeTakenWhole reports whether the device is idle, except for negligible foreign
// memory, so that a task can hold it whole.
func (d *Device) canBeTakenWhole() bool {
	return d.Use.Milli == 0 && d.Use.Memory == 0 && d.Foreign <= negligibleForeign
}

// isInUse reports whether a task holds a part of the device, or some of its memory is
// foreign.
func (d *Device) isInUse() bool { return d.Use != (DeviceUse{}) || d.Foreign != 0 }

// Idle reports whether no task holds any part of the device, not even a releasing one.
func (d *Device) Idle() bool { return d.Use.Leases == 0 && d.Use.ReleasingLeases == 0 }

// Part returns the share of the device, in thousandths, that corresponds to an amount of
// its memory. It is rounded down, so that claims that fill the memory exactly fit, and is
// at least 1, so that no claim is empty.
func (d *Device) Part(memory Bytes) Milli {
	if d.Memory <= 0 {
		return Whole
	}
	return max(1, Milli(MulDiv(int64(memory), int64(Whole), int64(d.Memory))))
}

// Of returns the amount of memory that corresponds to a share of the device.
func (d *Device) Of(share Milli) Bytes {
	return Bytes(MulDiv(int64(d.Memory), int64(share), int64(Whole)))
}

// Permits reports whether a task with this isolation may use the device together with the
// tasks that hold parts of it already.
func (d *Device) Permits(i Isolation) bool {
	u := &d.Use
	if u.Leases == 0 {
		return true
	}
	if u.Exclusive > 0 || i.Exclusive() {
		return false
	}
	if u.Sessions > 0 || i.GPU == GPUSessionExclusive {
		return u.Sessions == u.Leases && u.SessionName() == i.Session && i.GPU == GPUSessionExclusive
	}
	return true
}

// Usable reports whether a task of the shape could use the device if it were idle: the
// device is of the requested kind, selected and large enough.
func (s *Shape) Usable(d *Device) bool { return s.suits(d) && s.Need.Selects(d) }

// suits reports whether the device is of the requested kind and large enough, whether it
// is selected or not.
func (s *Shape) suits(d *Device) bool { return s.Need.Kind(d) && s.part().suits(s, d) }

// Takes reports whether a task of the shape can use the device as it is now, together
// with the tasks that hold parts of it.
func (s *Shape) Takes(d *Device) bool { return s.Need.Kind(d) && s.takesOfKind(d) }

// takesOfKind is Takes for a device of a kind that the shape may use.
func (s *Shape) takesOfKind(d *Device) bool {
	if !s.Need.Selects(d) || !d.Permits(s.Isolation) {
		return false
	}
	if s.Need.WholeNode && d.Use.Nodes > 0 {
		return false // tasks with WholeNode never share a node, even if each takes only a share of its devices
	}
	return s.part().takes(s, d)
}

// supply computes what the devices of a node can offer to a shape.
type supply struct {
	s       *Shape
	n       *Node
	unified bool // what is claimed of devices is also memory of the node
}

func supplyOf(s *Shape, n *Node) supply { return supply{s, n, n.Unified} }

// devicesAlike reports whether the shape can use either all of the devices or none if
// they are idle, so that it suffices to test one of them.
func (v supply) devicesAlike() bool { return v.n.uniform && len(v.s.Need.Selected) == 0 }

// isOneGroup reports whether the devices are alike and the shape may use all of them
// together.
func (v supply) isOneGroup() bool {
	if !v.devicesAlike() {
		return false
	}
	b := v.s.groupRule()
	return b == nil || b.uniform()
}

// usesSharedMemory reports whether the shape requests an amount of memory on a node where
// replicas share memory.
func (v supply) usesSharedMemory() bool { return v.n.sliced && !v.s.holdsWhole() }

// freeUnified returns the free unified memory that the claims can hold, after the memory
// that the shape requests of the node itself. If memory is not unified, it returns more
// than any device has.
func (v supply) freeUnified() Bytes {
	if !v.unified {
		return MaxDeviceMemory
	}
	if l := v.n.Ledger(Memory); l != nil {
		return max(0, Bytes(l.Free()-v.s.Resources.Of(Memory)))
	}
	return 0
}

// FreeUnifiedMemory returns how much of the node's free unified memory a task of the
// shape can hold through devices. If the node's memory is not unified, it returns more
// than any device has.
func (s *Shape) FreeUnifiedMemory(n *Node) Bytes { return supplyOf(s, n).freeUnified() }

// claim returns what a task of the shape holds of the device with index i.
func (v supply) claim(i int) Claim {
	d := &v.n.Devices[i]
	milli, memory := v.s.part().claim(v.s, d, d.Room())
	if v.unified && v.s.holdsWhole() {
		memory = min(memory, v.freeUnified()) // a whole device holds what is left of the unified memory
	}
	return Claim{Device: i, Milli: milli, Memory: memory}
}

// claimsFit reports whether all claims fit together: into the memory that replicas share
// and, if memory is unified, into the memory of the node.
func (v supply) claimsFit(claims []Claim) bool {
	if !v.sharedMemorySuffices(claims) {
		return false
	}
	if !v.unified {
		return true // layersKind.claimInOrder already checked what spills to the node's memory
	}
	if v.s.holdsWhole() && slices.ContainsFunc(claims, func(c Claim) bool { return c.Memory < v.s.Need.Memory }) {
		return false // the device is large enough, but too little unified memory is free
	}
	l := v.n.Ledger(Memory)
	return l != nil && l.Free() >= v.s.Resources.Of(Memory)+v.hostMemory(claims)
}

// hostMemory returns the memory of the node, in bytes, that the claims take in addition
// to what the shape requests of the node: layers that spill and, if memory is unified,
// the memory that is claimed of devices.
func (v supply) hostMemory(claims []Claim) int64 {
	held := v.s.set().spill(v.s, claims)
	if v.unified {
		for i := range claims {
			held += claims[i].Memory
		}
	}
	return int64(held)
}

// sharedMemorySuffices reports whether the claims fit together into the memory that
// replicas share.
func (v supply) sharedMemorySuffices(claims []Claim) bool {
	if !v.usesSharedMemory() {
		return true
	}
	for _, c := range claims {
		d := &v.n.Devices[c.Device]
		if c.Memory+claimedThroughOthers(v.n.Devices, d, claims) > d.Free() {
			return false
		}
	}
	return true
}

// totalMemory returns the device memory of all claims together. Whole replicas that share
// one memory count once.
func (v supply) totalMemory(claims []Claim) Bytes {
	var sum Bytes
	onePerMemory := v.n.sliced && v.s.holdsWhole()
	for i, c := range claims {
		if !onePerMemory || !claimsSharedMemory(v.n.Devices, &v.n.Devices[c.Device], claims[:i]) {
			sum += c.Memory
		}
	}
	return sum
}

// claimedThroughOthers returns how much the claims take of the device's memory through
// other replicas that share it.
func claimedThroughOthers(devices []Device, d *Device, claims []Claim) Bytes {
	var sum Bytes
	for _, c := range claims {
		if o := &devices[c.Device]; o != d && d.Shares != "" && o.Shares == d.Shares {
			sum += c.Memory
		}
	}
	return sum
}

// claimsSharedMemory reports whether one of the claims is on a device that shares its
// memory with d, or on d itself if d is a replica with shared memory.
func claimsSharedMemory(devices []Device, d *Device, claims []Claim) bool {
	return d.Shares != "" && slices.ContainsFunc(claims, func(c Claim) bool { return devices[c.Device].Shares == d.Shares })
}

// siblings calls visit for each other replica that shares the device's memory.
func siblings(devices []Device, d *Device, visit func(*Device)) {
	if d.Shares == "" {
		return
	}
	for i := range devices {
		if o := &devices[i]; o != d && o.Shares == d.Shares {
			visit(o)
		}
	}
}

// onePerMemory returns the devices of the order without the replicas that share memory
// with an earlier one, since these add no memory.
func onePerMemory(devices []Device, order []int) []int {
	var out []int
	for _, i := range order {
		shares := devices[i].Shares
		if shares == "" || !slices.ContainsFunc(out, func(o int) bool { return devices[o].Shares == shares }) {
			out = append(out, i)
		}
	}
	return out
}

// DeviceMemory and FreeDeviceMemory add up the device memory for a task that takes a whole
// node. Reserved memory does not count, and memory that replicas share counts once. On
// unified memory the sum is at most what is left after the memory that the task requests
// of the node itself.

// DeviceMemory returns how much memory the node's devices offer to a task that takes the
// whole node, with no other task on the node and no foreign use.
func (s *Shape) DeviceMemory(n *Node) Bytes {
	sum := sumDevices(n.Devices, (*Device).Capacity)
	if !n.Unified {
		return sum
	}
	return min(sum, max(0, Bytes(n.Capacity(Memory)-s.Resources.Of(Memory))))
}

// FreeDeviceMemory returns how much memory the node's devices offer now to a task that
// takes the whole node.
func (s *Shape) FreeDeviceMemory(n *Node) Bytes {
	sum := sumDevices(n.Devices, func(d *Device) Bytes { return max(0, d.Free()) })
	if !n.Unified {
		return sum
	}
	return min(sum, supplyOf(s, n).freeUnified())
}

func sumDevices(devices []Device, of func(*Device) Bytes) Bytes {
	var sum Bytes
	for i := range devices {
		if d := &devices[i]; !d.Lost && !sharesMemoryWithEarlier(devices[:i], d) {
			sum += of(d)
		}
	}
	return sum
}

// sharesMemoryWithEarlier reports whether the device shares its memory with one of the
// devices before it.
func sharesMemoryWithEarlier(before []Device, d *Device) bool {
	return d.Shares != "" && anyDevice(before, func(o *Device) bool { return !o.Lost && o.Shares == d.Shares })
}

// anyDevice reports whether is returns true for any of the devices.
func anyDevice(devices []Device, is func(*Device) bool) bool {
	for i := range devices {
		if is(&devices[i]) {
			return true
		}
	}
	return false
}
