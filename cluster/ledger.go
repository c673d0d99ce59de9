package cluster

import (
	"fmt"
	"slices"
)

// holds checks that each device has what is claimed of it. For a task that runs
// already, a lost device does not matter, and memory that a reading took for foreign
// may be its own.
func (n *Node) holds(s *Shape, claims []Claim, runs bool) error {
	for i, c := range claims {
		if c.Device < 0 || c.Device >= len(n.Devices) || (i > 0 && c.Device <= claims[i-1].Device) {
			return fmt.Errorf("device %d is not there or claimed twice", c.Device)
		}
		d := &n.Devices[c.Device]
		free := d.Free()
		if runs {
			free = d.Memory - d.Reserved - d.Use.Memory
		} else if s.counted() {
			free += d.Use.Beside
		}
		if c.Milli > d.FreeMilli() || c.Memory > free || !d.Permits(s.Isolation) {
			return fmt.Errorf("device %d is held by others", c.Device)
		}
		if s.Need.WholeNode && d.Use.Nodes > 0 {
			return fmt.Errorf("device %d is of a node that another has", c.Device)
		}
	}
	if !runs && !supplyOf(s, n).leave(claims) {
		return fmt.Errorf("devices share memory that is less than the claims together")
	}
	return nil
}

// host is the node's own memory that the claims take beside what the shape requests,
// if that is the resource's name.
func (n *Node) host(s *Shape, claims []Claim, resource string) int64 {
	if resource != Memory {
		return 0
	}
	return supplyOf(s, n).host(claims)
}

// booking is what tasks hold: the ledgers of nodes, the use of queues, and counts.
type booking struct {
	fleet   *fleet
	tree    *tree
	classes *classes
}

// book adds (sign +1) or takes back (-1) what the task holds of node, queue and
// the queue's ancestors.
func (b *booking) book(t *Task, sign int64) {
	n := t.Node
	for _, a := range t.held.Resources {
		if l := n.Ledger(a.Name); l != nil {
			l.Used += sign * (a.Value + n.host(t.held, t.Claims, a.Name))
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
		was := u.Milli >= Whole
		u.Milli += Milli(sign) * c.Milli
		if now := u.Milli >= Whole; now != was {
			n.filled += int(sign)
		}
		u.Memory += Bytes(sign) * c.Memory
		u.Leases += int32(sign)
		if n.sliced && !t.held.counted() {
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
				u.Session = ""
			case u.Sessions == 1 && sign > 0:
				u.Session = iso.Session
			default: // facts may bring several sessions together
				u.Session = firstSession(n, c.Device, t, sign > 0)
			}
		}
	}
	b.tree.charge(t, sign)
}

// firstSession is the first, by name, of the sessions that hold the device; the task
// counts or does not.
func firstSession(n *Node, device int, t *Task, counts bool) string {
	first, found := "", false
	see := func(o *Task) {
		if o.held.Isolation.GPU == GPUSessionExclusive && slices.ContainsFunc(o.Claims, func(c Claim) bool { return c.Device == device }) {
			if name := o.held.Isolation.Session; !found || name < first {
				first, found = name, true
			}
		}
	}
	for _, o := range n.Tasks {
		if o != t && !o.leaves() && !o.held.Isolation.Exclusive() {
			see(o)
		}
	}
	if counts {
		see(t)
	}
	return first
}

// bookReleasing is book for a task that gives its room back.
func (b *booking) bookReleasing(t *Task, sign int64) {
	n := t.Node
	for _, a := range t.held.Resources {
		if l := n.Ledger(a.Name); l != nil {
			l.Releasing += sign * (a.Value + n.host(t.held, t.Claims, a.Name))
		}
	}
	for _, c := range t.Claims {
		u := &n.Devices[c.Device].Use
		u.ReleasingMilli += Milli(sign) * c.Milli
		u.ReleasingMemory += Bytes(sign) * c.Memory
		u.ReleasingLeases += int32(sign)
	}
}

// Keeps reports whether the node still has what the task has reserved: a device
// may be lost, and a node may shrink, between the reservation and the binding.
func (n *Node) Keeps(t *Task) bool {
	for _, a := range t.held.Resources {
		if a.Value+n.host(t.held, t.Claims, a.Name) > 0 {
			if l := n.Ledger(a.Name); l == nil || l.Free() < 0 {
				return false
			}
		}
	}
	for _, c := range t.Claims {
		d := &n.Devices[c.Device]
		if u := &d.Use; u.Leases > 1 && (u.Exclusive > 0 || u.Sessions > 0 && u.Sessions != u.Leases) || t.held.Need.WholeNode && u.Nodes > 1 {
			return false // another was seen on it that tolerates none beside it
		}
		if d.Lost || d.Use.Milli > Whole || d.Use.Memory > d.Room() || !t.held.counted() && d.Free() < 0 {
			return false
		}
	}
	return t.held.Isolation.CPU != CPUStrictIsolated || n.Isolated <= n.Advertised.IsolableCores
}

// present reports whether the room that the claims name is free of tasks that are
// releasing it, all other reservations set aside.
func (n *Node) present(t *Task, claims []Claim) bool {
	shape := t.Held()
	leaves := func(d *Device) bool { return d.Use.ReleasingLeases > 0 }
	if !slices.ContainsFunc(n.Resources, func(l Ledger) bool { return l.Releasing > 0 }) && !anyDevice(n.Devices, leaves) {
		return true
	}
	there := func(o *Task) bool { return o != t && (o.Runs() || o.Status == Releasing) }
	if shape.Need.WholeNode && slices.ContainsFunc(n.Tasks, func(o *Task) bool { return there(o) && o.held.Need.WholeNode }) {
		return false // no two of these share a node, not even while one leaves
	}
	for _, a := range shape.Resources {
		l := n.Ledger(a.Name)
		if l == nil || l.Releasing == 0 {
			continue
		}
		held := a.Value + n.host(shape, claims, a.Name)
		if held == 0 {
			continue // it takes nothing of it, however full it is
		}
		for _, o := range n.Tasks {
			if there(o) {
				held += o.held.Resources.Of(a.Name) + n.host(o.held, o.Claims, a.Name)
			}
		}
		if held > l.Capacity-l.Foreign {
			return false
		}
	}
	if shape.Isolation.CPU == CPUStrictIsolated {
		cores := shape.Cores()
		for _, o := range n.Tasks {
			if there(o) && o.held.Isolation.CPU == CPUStrictIsolated {
				cores += o.held.Cores()
			}
		}
		if cores > n.Advertised.IsolableCores {
			return false
		}
	}
	for _, c := range claims {
		d := &n.Devices[c.Device]
		if d.Use.ReleasingLeases == 0 && d.Shares == "" {
			continue
		}
		milli, memory := c.Milli, c.Memory
		if !shape.counted() {
			memory += claimed(n.Devices, d, claims)
		}
		for _, o := range n.Tasks {
			if !there(o) {
				continue
			}
			if !shape.counted() && !o.held.counted() {
				memory += claimed(n.Devices, d, o.Claims)
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

// rebookAll is rebook for all tasks that are on nodes.
func (b *booking) rebookAll(sign int64) {
	for _, n := range b.fleet.all() {
		for _, t := range n.Tasks {
			b.rebook(t, sign)
		}
	}
}

// count adds (by +1) or takes away (-1) a task that is on a node, or a landing.
func (b *booking) count(t *Task, by int) {
	if t.shadows != nil {
		t.Job.expected += by
	} else {
		t.Job.attached += by
	}
	if t.Job.Preemptible {
		b.classes.preemptible += by
	}
}

// enter is rebook, and lists the task in its class or takes it out of it.
func (b *booking) enter(t *Task, sign int) {
	b.rebook(t, int64(sign))
	b.classes.list(t, sign)
}

// rebook adds (sign +1) or takes back (-1) what the task holds, as it stands.
func (b *booking) rebook(t *Task, sign int64) {
	if t.leaves() {
		b.bookReleasing(t, sign)
	} else {
		b.book(t, sign)
	}
}
