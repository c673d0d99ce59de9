package cluster

import (
	"fmt"
	"slices"
)

// holds returns an error if a device does not have what is claimed of it. runs is true
// for a task that is reported to run already: then Foreign is ignored, because the
// foreign memory may be the task's own, and devices that share memory may be
// overcommitted. It does not check whether devices are lost.
func (n *Node) holds(s *Shape, claims []Claim, runs bool) error {
	for i, c := range claims {
		if c.Device < 0 || c.Device >= len(n.Devices) || (i > 0 && c.Device <= claims[i-1].Device) {
			return fmt.Errorf("device %d does not exist or is claimed twice", c.Device)
		}
		d := &n.Devices[c.Device]
		free := d.Free()
		if runs {
			free = d.Memory - d.Reserved - d.Use.Memory
		} else if s.holdsWhole() {
			free += d.Use.Beside
		}
		if c.Milli > d.FreeMilli() || c.Memory > free || !d.Permits(s.Isolation) {
			return fmt.Errorf("device %d is held by other tasks", c.Device)
		}
		if s.Need.WholeNode && d.Use.Nodes > 0 {
			return fmt.Errorf("device %d is on a node that another task holds as a whole", c.Device)
		}
	}
	if !runs && !supplyOf(s, n).sharedMemorySuffices(claims) {
		return fmt.Errorf("the devices share memory, and the claims together are more than it")
	}
	return nil
}

// hostMemory returns how much of the node's own memory, in bytes, a task with these claims
// takes in addition to what the shape requests. It is 0 for resources other than
// memory.
func (n *Node) hostMemory(s *Shape, claims []Claim, resource string) int64 {
	if resource != Memory {
		return 0
	}
	return supplyOf(s, n).hostMemory(claims)
}

// booking adds up what tasks hold: in the ledgers of nodes, in the use of queues, and
// in the counts of jobs and classes.
type booking struct {
	fleet   *fleet
	tree    *tree
	classes *classes
}

// book adds (sign +1) or subtracts (-1) what the task holds, for its node, its queue
// and the queues above it.
func (b *booking) book(t *Task, sign int64) {
	n := t.Node
	for _, a := range t.held.Resources {
		if l := n.Ledger(a.Name); l != nil {
			l.Used += sign * (a.Value + n.hostMemory(t.held, t.Claims, a.Name))
		}
	}
	for _, a := range t.held.LeftOut {
		if l := n.Ledger(a.Name); l != nil {
			l.LeftOut += sign * a.Value
		}
	}
	iso := t.held.Isolation
	if iso.CPU == CPUStrictIsolated {
		n.Isolated += sign * t.held.Cores()
	}
	for _, c := range t.Claims {
		d := &n.Devices[c.Device]
		u := &d.Use
		was := u.Milli
		u.Milli += Milli(sign) * c.Milli
		if (u.Milli >= Whole) != (was >= Whole) {
			n.filled += int32(sign)
		}
		if (u.Milli > 0) != (was > 0) {
			n.touched += int32(sign)
		}
		u.Memory += Bytes(sign) * c.Memory
		u.Leases += int32(sign)
		if n.sliced && !t.held.holdsWhole() {
			siblings(n.Devices, d, func(o *Device) { o.Use.Beside += Bytes(sign) * c.Memory })
		}
		if t.held.Need.WholeNode {
			u.Nodes += int32(sign)
		}
		if d.countsAs(n.DeviceResource) {
			n.deviceUsed += sign * int64(c.Milli)
		}
		if iso.Exclusive() {
			u.Exclusive += int32(sign)
		} else if iso.GPU == GPUSessionExclusive {
			u.Sessions += int32(sign)
			switch {
			case u.Sessions == 0:
				u.Session = nil
			case u.Sessions == 1 && sign > 0:
				u.Session = &t.held.Isolation.Session
			default: // facts may report tasks of several sessions on one device
				u.Session = firstSession(n, c.Device, t, sign > 0)
			}
		}
	}
	b.tree.charge(t, sign)
}

// firstSession returns the first, by name, of the sessions that hold the device.
// include says whether the session of t is one of them.
func firstSession(n *Node, device int, t *Task, include bool) *string {
	var first *string
	see := func(o *Task) {
		if o.held.Isolation.GPU == GPUSessionExclusive && slices.ContainsFunc(o.Claims, func(c Claim) bool { return c.Device == device }) {
			if name := &o.held.Isolation.Session; first == nil || *name < *first {
				first = name
			}
		}
	}
	for _, o := range n.Tasks {
		if o != t && !o.releasesRoom() && !o.held.Isolation.Exclusive() {
			see(o)
		}
	}
	if include {
		see(t)
	}
	return first
}

// bookReleasing is book for a task that is releasing its room: it updates the
// Releasing figures of the node, and charges no queue.
func (b *booking) bookReleasing(t *Task, sign int64) {
	n := t.Node
	for _, a := range t.held.Resources {
		if l := n.Ledger(a.Name); l != nil {
			l.Releasing += sign * (a.Value + n.hostMemory(t.held, t.Claims, a.Name))
		}
	}
	for _, c := range t.Claims {
		u := &n.Devices[c.Device].Use
		u.ReleasingMilli += Milli(sign) * c.Milli
		u.ReleasingMemory += Bytes(sign) * c.Memory
		u.ReleasingLeases += int32(sign)
	}
}

// Keeps reports whether the node still has the room that is reserved for the task.
// Between the reservation and the binding a device may be lost, a node may shrink, or
// a fact may report another task on the device.
func (n *Node) Keeps(t *Task) bool {
	for _, a := range t.held.Resources {
		if a.Value+n.hostMemory(t.held, t.Claims, a.Name) > 0 {
			if l := n.Ledger(a.Name); l == nil || l.Free() < 0 {
				return false
			}
		}
	}
	for _, c := range t.Claims {
		d := &n.Devices[c.Device]
		if u := &d.Use; u.Leases > 1 && (u.Exclusive > 0 || u.Sessions > 0 && u.Sessions != u.Leases) || t.held.Need.WholeNode && u.Nodes > 1 {
			return false // a task that does not tolerate other tasks was seen on the device
		}
		if d.Lost || d.Use.Milli > Whole || d.Use.Memory > d.Room() || !t.held.holdsWhole() && d.Free() < 0 {
			return false
		}
	}
	return t.held.Isolation.CPU != CPUStrictIsolated || n.Isolated <= n.SupportedIsolation.IsolableCores
}

// isVacated reports whether the room that the claims name is free of releasing tasks.
// It counts what running and releasing tasks hold, and ignores reservations of other
// tasks.
func (n *Node) isVacated(t *Task, claims []Claim) bool {
	shape := t.Held()
	hasReleasing := func(d *Device) bool { return d.Use.ReleasingLeases > 0 }
	if !slices.ContainsFunc(n.Resources, func(l Ledger) bool { return l.Releasing > 0 }) && !anyDevice(n.Devices, hasReleasing) {
		return true
	}
	onNode := func(o *Task) bool { return o != t && (o.Runs() || o.Status == Releasing) }
	if shape.Need.WholeNode && slices.ContainsFunc(n.Tasks, func(o *Task) bool { return onNode(o) && o.held.Need.WholeNode }) {
		return false // two such tasks never share a node, even while one is releasing
	}
	for _, a := range shape.Resources {
		l := n.Ledger(a.Name)
		if l == nil || l.Releasing == 0 {
			continue
		}
		held := a.Value + n.hostMemory(shape, claims, a.Name)
		if held == 0 {
			continue // the task takes nothing of this resource, so it may be overcommitted
		}
		for _, o := range n.Tasks {
			if onNode(o) {
				held += o.held.Resources.Of(a.Name) + n.hostMemory(o.held, o.Claims, a.Name)
			}
		}
		if held > l.Capacity-l.Foreign {
			return false
		}
	}
	if shape.Isolation.CPU == CPUStrictIsolated {
		cores := shape.Cores()
		for _, o := range n.Tasks {
			if onNode(o) && o.held.Isolation.CPU == CPUStrictIsolated {
				cores += o.held.Cores()
			}
		}
		if cores > n.SupportedIsolation.IsolableCores {
			return false
		}
	}
	for _, c := range claims {
		d := &n.Devices[c.Device]
		if d.Use.ReleasingLeases == 0 && d.Shares == "" {
			continue
		}
		milli, memory := c.Milli, c.Memory
		if !shape.holdsWhole() {
			memory += claimedThroughOthers(n.Devices, d, claims)
		}
		for _, o := range n.Tasks {
			if !onNode(o) {
				continue
			}
			if !shape.holdsWhole() && !o.held.holdsWhole() {
				memory += claimedThroughOthers(n.Devices, d, o.Claims)
			}
			for _, oc := range o.Claims {
				if oc.Device != c.Device {
					continue
				}
				if !shape.Isolation.Beside(o.held.Isolation) {
					return false
				}
				milli += oc.Milli
				memory += oc.Memory
			}
		}
		if milli > Whole || memory > d.Room() {
			return false
		}
	}
	return true
}

// rebookAll calls rebook for all tasks that are on nodes.
func (b *booking) rebookAll(sign int64) {
	for _, n := range b.fleet.all() {
		for _, t := range n.Tasks {
			b.rebook(t, sign)
		}
	}
}

// count adds (by +1) or subtracts (-1) a task that is on a node, or the shadow of one
// that moves, in the counts of its job and of its class.
func (b *booking) count(t *Task, by int) {
	if t.ShadowOf() != nil {
		t.Job.landings += int32(by)
	} else {
		t.Job.tasksOnNodes += int32(by)
	}
	if t.Job.Preemptible {
		b.classes.preemptible += by
	}
}

// bookAndList calls rebook, and adds the task to its class (sign +1) or removes it (-1).
func (b *booking) bookAndList(t *Task, sign int) {
	b.rebook(t, int64(sign))
	b.classes.list(t, sign)
}

// rebook adds (sign +1) or subtracts (-1) what the task holds: as releasing if it
// is leaving its node, as used otherwise.
func (b *booking) rebook(t *Task, sign int64) {
	if t.releasesRoom() {
		b.bookReleasing(t, sign)
	} else {
		b.book(t, sign)
	}
}
