package cluster

import "slices"

// What devices can give is worked out here, for all ways to ask: nothing of one that
// is lost or of another kind, no memory that is reserved or found in use, nothing
// beside tasks whose isolation forbids it. Replicas that time-slicing makes of a
// device share one memory: what is claimed of it through one replica is not there
// for another. A task that takes a replica whole takes a turn on the device and says
// nothing of memory, so that it is counted and no more. On unified memory all that
// is claimed of devices is memory of the node too.

// FreeMilli is the part of the device that is neither held nor reserved.
func (d *Device) FreeMilli() Milli { return Whole - d.Use.Milli }

// Capacity is the device memory that tasks can ever have.
func (d *Device) Capacity() Bytes { return max(0, d.Memory-d.Reserved) }

// Room is the device memory that tasks can have in all, beside what was found in use.
func (d *Device) Room() Bytes { return max(0, d.Memory-d.Reserved-d.Foreign) }

// Free is the device memory that is neither held, reserved, nor found in use.
func (d *Device) Free() Bytes { return d.Room() - d.Use.Memory - d.Use.Beside }

// InStep is the device memory that is free where memory and time are taken in step:
// the scarcer of the two counts.
func (d *Device) InStep() Bytes {
	return min(d.Free(), d.Of(max(0, d.FreeMilli())))
}

// negligible is foreign memory that does not keep a task from having a device to
// itself: drivers and displays take some hundred MiB of an idle one.
const negligibleForeign Bytes = 1 << 30

// empty reports whether a task can have the device to itself.
func (d *Device) canBeTakenWhole() bool {
	return d.Use.Milli == 0 && d.Use.Memory == 0 && d.Foreign <= negligibleForeign
}

// touched reports whether any of the device is held or found in use.
func (d *Device) isInUse() bool { return d.Use != (DeviceUse{}) || d.Foreign != 0 }

// Idle reports whether no task holds any of the device, not even one that is leaving.
func (d *Device) Idle() bool { return d.Use.Leases == 0 && d.Use.ReleasingLeases == 0 }

// Part is the share of the device that so much of its memory stands for: rounded
// down, so that claims that fill the memory exactly fit, and at least one
// thousandth, so that no claim is for nothing.
func (d *Device) Part(memory Bytes) Milli {
	if d.Memory <= 0 {
		return Whole
	}
	return max(1, Milli(MulDiv(int64(memory), int64(Whole), int64(d.Memory))))
}

// Of is the memory that such a share of the device has.
func (d *Device) Of(share Milli) Bytes {
	return Bytes(MulDiv(int64(d.Memory), int64(share), int64(Whole)))
}

// Permits reports whether the leases already on the device let this isolation join them.
func (d *Device) Permits(i Isolation) bool {
	u := &d.Use
	if u.Leases == 0 {
		return true
	}
	if u.Exclusive > 0 || i.Exclusive() {
		return false
	}
	if u.Sessions > 0 || i.GPU == GPUSessionExclusive {
		return u.Sessions == u.Leases && u.Session == i.Session && i.GPU == GPUSessionExclusive
	}
	return true
}

// Usable reports whether the device is of the kind, may be taken and is large
// enough, held or not.
func (s *Shape) Usable(d *Device) bool { return s.suits(d) && s.Need.Selects(d) }

// suits reports whether the device is of the kind and large enough, selected or not.
func (s *Shape) suits(d *Device) bool { return s.Need.Kind(d) && s.part().suits(s, d) }

// Takes reports whether the device can take the shape's part beside what is held.
func (s *Shape) Takes(d *Device) bool {
	if !s.Need.Kind(d) || !s.Need.Selects(d) || !d.Permits(s.Isolation) {
		return false
	}
	if s.Need.WholeNode && d.Use.Nodes > 0 {
		return false // tasks that take whole nodes never share one, however little they take
	}
	return s.part().takes(s, d)
}

// supply is what the devices of a node can give to a shape.
type supply struct {
	s       *Shape
	n       *Node
	unified bool // what is claimed of devices is memory of the node too
}

func supplyOf(s *Shape, n *Node) supply { return supply{s, n, n.Unified} }

// alike reports whether the shape can use all of the devices or none, if they are
// idle, so that one can be asked about for all.
func (v supply) alike() bool { return v.n.uniform && len(v.s.Need.Selected) == 0 }

// oneGroup reports whether, in addition, all devices may be taken together.
func (v supply) isOneGroup() bool {
	if !v.alike() {
		return false
	}
	b := v.s.bond()
	return b == nil || b.uniform()
}

// shares reports whether the shape takes memory of which devices have one together.
func (v supply) shares() bool { return v.n.sliced && !v.s.counted() }

// pot is the unified memory that the claims can have; without one it is more than
// any device has.
func (v supply) pot() Bytes {
	if !v.unified {
		return MaxDeviceMemory
	}
	if l := v.n.Ledger(Memory); l != nil {
		return max(0, Bytes(l.Free()-v.s.Resources.Of(Memory)))
	}
	return 0
}

// Pot is the unified memory of the node that the shape's devices can have; without
// one it is more than any device has.
func (s *Shape) Pot(n *Node) Bytes { return supplyOf(s, n).pot() }

// claim is what the shape holds of the device.
func (v supply) claim(i int) Claim {
	d := &v.n.Devices[i]
	milli, memory := v.s.part().claim(v.s, d, d.Room())
	if v.unified && v.s.counted() {
		memory = min(memory, v.pot()) // all that there is left to be had
	}
	return Claim{Device: i, Milli: milli, Memory: memory}
}

// affords reports whether the memory that devices share, and on unified memory the
// node, has as much as the claims take of it together.
func (v supply) affords(claims []Claim) bool {
	if !v.leave(claims) {
		return false
	}
	if !v.unified {
		return true // what spills was looked at when layers were laid out
	}
	if v.s.counted() && slices.ContainsFunc(claims, func(c Claim) bool { return c.Memory < v.s.Need.Memory }) {
		return false // the device has as much, and the pot does not
	}
	l := v.n.Ledger(Memory)
	return l != nil && l.Free() >= v.s.Resources.Of(Memory)+v.host(claims)
}

// host is the node's own memory that claims take beside what the shape requests:
// what spills, and on unified memory the devices' part too.
func (v supply) host(claims []Claim) int64 {
	held := v.s.set().spill(v.s, claims)
	if v.unified {
		for i := range claims {
			held += claims[i].Memory
		}
	}
	return int64(held)
}

// leave reports whether the claims leave each other their part of memory that
// devices share.
func (v supply) leave(claims []Claim) bool {
	if !v.shares() {
		return true
	}
	for _, c := range claims {
		d := &v.n.Devices[c.Device]
		if c.Memory+claimed(v.n.Devices, d, claims) > d.Free() {
			return false
		}
	}
	return true
}

// together is the memory that the claims come to. Replicas that are taken whole
// have the memory that they share, and have it once.
func (v supply) totalMemory(claims []Claim) Bytes {
	var sum Bytes
	once := v.n.sliced && v.s.counted()
	for i, c := range claims {
		if !once || !claimsSharedMemory(v.n.Devices, &v.n.Devices[c.Device], claims[:i]) {
			sum += c.Memory
		}
	}
	return sum
}

// claimed is what the claims take of the device's memory through its siblings.
func claimed(devices []Device, d *Device, claims []Claim) Bytes {
	var sum Bytes
	for _, c := range claims {
		if o := &devices[c.Device]; o != d && d.Shares != "" && o.Shares == d.Shares {
			sum += c.Memory
		}
	}
	return sum
}

// shared reports whether one of the claims is of the memory that the device shares.
func claimsSharedMemory(devices []Device, d *Device, claims []Claim) bool {
	return d.Shares != "" && slices.ContainsFunc(claims, func(c Claim) bool { return devices[c.Device].Shares == d.Shares })
}

// siblings visits the other replicas that share the device's memory.
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

// apart leaves out replicas that share memory with one before them: they have
// nothing to add to it.
func apart(devices []Device, order []int) []int {
	var out []int
	for _, i := range order {
		shares := devices[i].Shares
		if shares == "" || !slices.ContainsFunc(out, func(o int) bool { return devices[o].Shares == shares }) {
			out = append(out, i)
		}
	}
	return out
}

// A task that takes a whole node has what its devices can give together: not what
// is reserved, the memory that replicas share once, and on unified memory no more
// than the pot has beside what the task requests of it.

// DeviceMemory is what the node's devices give such a task with no other task and
// no foreign process on the node.
func (s *Shape) DeviceMemory(n *Node) Bytes {
	sum := sumDevices(n.Devices, (*Device).Capacity)
	if !n.Unified {
		return sum
	}
	return min(sum, max(0, Bytes(n.Capacity(Memory)-s.Resources.Of(Memory))))
}

// FreeDeviceMemory is what they give it now.
func (s *Shape) FreeDeviceMemory(n *Node) Bytes {
	sum := sumDevices(n.Devices, func(d *Device) Bytes { return max(0, d.Free()) })
	if !n.Unified {
		return sum
	}
	return min(sum, supplyOf(s, n).pot())
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

// repeated reports whether a device before it has the memory that the device shares.
func sharesMemoryWithEarlier(before []Device, d *Device) bool {
	return d.Shares != "" && anyDevice(before, func(o *Device) bool { return !o.Lost && o.Shares == d.Shares })
}

// anyDevice reports whether what is asked is so of any device.
func anyDevice(devices []Device, is func(*Device) bool) bool {
	for i := range devices {
		if is(&devices[i]) {
			return true
		}
	}
	return false
}
