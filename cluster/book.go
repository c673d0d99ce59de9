package cluster

import (
	"fmt"
	"slices"
)

// Place books the claims of a pending task on the node: it is then Bound, or
// Nominated where part of the room is still releasing. The caller has checked
// that it fits; Place checks again and changes nothing if it does not, because
// no caller's mistake may ever book a device twice.
func (s *State) Place(t *Task, n *Node, claims []Claim) error {
	if t.Status != Pending {
		return fmt.Errorf("task %s is %s, not pending", t.ID, t.Status)
	}
	if err := s.fits(t, n, claims); err != nil {
		return fmt.Errorf("task %s does not fit node %s: %w", t.ID, n.Name, err)
	}
	s.attach(t, n, claims, Bound)
	switch {
	case t.shadows != nil: // what it stands for is still elsewhere
		t.Status = Nominated
	case !n.present(t):
		t.Status = Nominated
		s.nominated[t.ID] = t
	}
	return nil
}

// Restore books a task that is known to run on the node. A node may have shrunk
// below what runs on it, so cores and memory are booked as they are, and the node
// then takes nothing new; a device is never booked beyond what it has.
func (s *State) Restore(t *Task, n *Node, claims []Claim) error {
	if t.Status != Pending {
		return fmt.Errorf("task %s is %s, not pending", t.ID, t.Status)
	}
	if s.byName[n.Name] != n {
		return fmt.Errorf("task %s is said to run on node %s, which is gone", t.ID, n.Name)
	}
	if err := n.holds(t.Shape, claims, true); err != nil {
		return fmt.Errorf("task %s is said to run on node %s, where it does not fit: %w", t.ID, n.Name, err)
	}
	for _, c := range claims {
		d := &n.Devices[c.Device]
		if u := &d.Use; u.Milli+u.ReleasingMilli+c.Milli > Whole || u.Memory+u.ReleasingMemory+c.Memory > d.Memory {
			return fmt.Errorf("task %s is said to run on device %d of node %s, which a task that is leaving still holds", t.ID, c.Device, n.Name)
		}
	}
	s.attach(t, n, claims, Bound)
	s.choose(t)
	return nil
}

// choose fixes the job's alternative with the first of its tasks.
func (s *State) choose(t *Task) {
	for i := range t.Job.Alternatives {
		if t.Job.Chosen < 0 && slices.Contains(t.Job.Alternatives[i].Tasks, t) {
			s.Choose(t.Job, i)
		}
	}
}

// Evict turns a bound task's room into releasing room: promised to nobody, but not free yet.
func (s *State) Evict(t *Task) error {
	if t.Status != Bound {
		return fmt.Errorf("task %s is %s, not bound", t.ID, t.Status)
	}
	s.book(t, -1)
	t.Status = Releasing
	s.bookReleasing(t, +1)
	s.settle(t.Job)
	s.touch(t.Node)
	t.Node.freed = t.Node.version
	return nil
}

// Unevict undoes Evict: the task has its room back. Nothing may have been promised
// of it since; whoever takes back what came after first, as a statement does, is safe.
func (s *State) Unevict(t *Task) error {
	if t.Status != Releasing {
		return fmt.Errorf("task %s is %s, not releasing", t.ID, t.Status)
	}
	s.bookReleasing(t, -1)
	s.book(t, +1)
	t.Status = Bound
	s.settle(t.Job)
	s.touch(t.Node)
	return nil
}

// Clear takes the task off its node, however it stands there: it has ended, or is
// pending again. Room that it was releasing is then really free. A task that
// moves is then nominated where it was promised room.
func (s *State) Clear(t *Task) {
	n := t.Node
	if n == nil {
		return
	}
	shadow := t.landing
	if o := t.shadows; o != nil && o.landing == t {
		o.landing = nil
		delete(s.moving, o.ID)
	}
	s.rebook(t, -1)
	n.removeTask(t)
	if t.Job.Preemptible {
		s.preemptible--
	}
	delete(s.nominated, t.ID)
	t.Status, t.Node, t.Claims = Pending, nil, nil
	t.Started, t.Promised = 0, 0
	if t.Job.count(t, -1); t.Job.attached+t.Job.expected == 0 {
		t.Job.Chosen = -1 // nothing of it stands: it may take any form again
		s.gather(t.Job)
	}
	s.settle(t.Job)
	s.touch(n)
	n.freed = n.version
	if shadow != nil {
		s.arrive(t, shadow)
	}
}

// Bind turns a nominated task into a bound one if the room it was promised is
// really free by now, and says whether it did.
func (s *State) Bind(t *Task) bool {
	if t.Status != Nominated || !t.Node.Keeps(t) || !t.Node.present(t) {
		return false
	}
	t.Status = Bound
	delete(s.nominated, t.ID)
	s.settle(t.Job)
	s.touch(t.Node)
	return true
}

// Unbind undoes Bind.
func (s *State) Unbind(t *Task) {
	t.Status = Nominated
	s.nominated[t.ID] = t
	s.settle(t.Job)
	s.touch(t.Node)
}

// rebook adds or takes back what the task holds, as it stands.
func (s *State) rebook(t *Task, sign int64) {
	if t.Status == Releasing {
		s.bookReleasing(t, sign)
	} else {
		s.book(t, sign)
	}
}

func (s *State) attach(t *Task, n *Node, claims []Claim, status Status) {
	t.Node, t.Claims, t.Status = n, claims, status
	n.addTask(t)
	t.Job.count(t, +1)
	if t.Job.Preemptible {
		s.preemptible++
	}
	s.settle(t.Job)
	s.book(t, +1)
	s.touch(n)
}

// fits checks the claims against the ledgers.
func (s *State) fits(t *Task, n *Node, claims []Claim) error {
	if s.byName[n.Name] != n {
		return fmt.Errorf("the node is gone")
	}
	for _, a := range t.Shape.Resources {
		if want := a.Value + n.host(t.Shape, claims, a.Name); want > 0 {
			if l := n.Ledger(a.Name); l == nil || l.Free() < want {
				return fmt.Errorf("not enough %s", a.Name)
			}
		}
	}
	if t.Shape.Isolation.CPU == CPUStrictIsolated && n.Isolated+t.Shape.Cores() > n.Advertised.IsolableCores {
		return fmt.Errorf("not enough isolable cores")
	}
	for _, c := range claims {
		if c.Device >= 0 && c.Device < len(n.Devices) && n.Devices[c.Device].Lost {
			return fmt.Errorf("device %d is lost", c.Device)
		}
	}
	return n.holds(t.Shape, claims, false)
}

// holds checks that each claim is there to be had. That a device is lost is no
// news to a task that runs on it, and what a reading took for somebody else's may
// be its own.
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
	if !runs && !n.shareable(s, claims) {
		return fmt.Errorf("devices share memory that is less than the claims together")
	}
	return nil
}

// host is the node's own memory that claims take beside what the shape asks for:
// layers that are on no device, and on unified memory the devices' part too.
func (n *Node) host(s *Shape, claims []Claim, name string) int64 {
	if name != Memory {
		return 0
	}
	var held Bytes
	if n.Unified {
		for i := range claims {
			held += claims[i].Memory
		}
	}
	if l := s.Need.Layers; l != nil {
		left := l.Total
		for _, c := range claims {
			left -= c.Layers
		}
		held += Bytes(left) * l.Bytes
	}
	return int64(held)
}

// book adds (sign +1) or takes back (-1) what the task holds of node, queue and
// the queue's ancestors.
func (s *State) book(t *Task, sign int64) {
	n := t.Node
	for _, a := range t.Shape.Resources {
		v := sign * (a.Value + n.host(t.Shape, t.Claims, a.Name))
		if l := n.Ledger(a.Name); l != nil {
			l.Used += v
		}
		s.charge(t, a.Name, v)
	}
	iso := t.Shape.Isolation
	if iso.CPU == CPUStrictIsolated {
		n.Isolated += sign * t.Shape.Cores()
	}
	for _, c := range t.Claims {
		d := &n.Devices[c.Device]
		u := &d.Use
		u.Milli += Milli(sign) * c.Milli
		u.Memory += Bytes(sign) * c.Memory
		u.Leases += int32(sign)
		if n.sliced && !t.Shape.counted() {
			n.siblings(d, func(o *Device) { o.Use.Beside += Bytes(sign) * c.Memory })
		}
		if t.Shape.Need.WholeNode {
			u.Nodes += int32(sign)
		}
		if n.counts(d) {
			n.deviceUsed += sign * int64(c.Milli)
		}
		if iso.Exclusive() {
			u.Exclusive += int32(sign)
		} else if iso.GPU == GPUSessionExclusive {
			u.Sessions += int32(sign)
			if u.Sessions > 0 {
				u.Session = iso.Session
			} else {
				u.Session = ""
			}
		}
		s.charge(t, d.Resource, sign*int64(c.Milli))
		s.chargeProduct(t, d, sign*int64(c.Milli))
	}
}

func (s *State) bookReleasing(t *Task, sign int64) {
	n := t.Node
	for _, a := range t.Shape.Resources {
		if l := n.Ledger(a.Name); l != nil {
			l.Releasing += sign * (a.Value + n.host(t.Shape, t.Claims, a.Name))
		}
	}
	for _, c := range t.Claims {
		u := &n.Devices[c.Device].Use
		u.ReleasingMilli += Milli(sign) * c.Milli
		u.ReleasingMemory += Bytes(sign) * c.Memory
		u.ReleasingLeases += int32(sign)
	}
}

// Keeps reports whether the node still has what the task was promised: a device
// may be lost and a machine may shrink between a promise and its keeping.
func (n *Node) Keeps(t *Task) bool {
	for _, a := range t.Shape.Resources {
		if a.Value+n.host(t.Shape, t.Claims, a.Name) > 0 {
			if l := n.Ledger(a.Name); l == nil || l.Free() < 0 {
				return false
			}
		}
	}
	for _, c := range t.Claims {
		d := &n.Devices[c.Device]
		if d.Lost || d.Use.Milli > Whole || d.Use.Memory > d.Room() || !t.Shape.counted() && d.Free() < 0 {
			return false
		}
	}
	return t.Shape.Isolation.CPU != CPUStrictIsolated || n.Isolated <= n.Advertised.IsolableCores
}

// present reports whether the room that the task was promised is free of tasks
// on their way out, once all other promises made to others are set aside.
func (n *Node) present(t *Task) bool {
	if !n.releasing() {
		return true
	}
	there := func(o *Task) bool { return o != t && (o.Status == Bound || o.Status == Releasing) }
	if t.Shape.Need.WholeNode && slices.ContainsFunc(n.Tasks, func(o *Task) bool { return there(o) && o.Shape.Need.WholeNode }) {
		return false // no two of these share a node, not even while one leaves
	}
	for _, a := range t.Shape.Resources {
		l := n.Ledger(a.Name)
		if l == nil || l.Releasing == 0 {
			continue
		}
		held := a.Value + n.host(t.Shape, t.Claims, a.Name)
		for _, o := range n.Tasks {
			if there(o) {
				held += o.Shape.Resources.Of(a.Name) + n.host(o.Shape, o.Claims, a.Name)
			}
		}
		if held > l.Capacity-l.Foreign {
			return false
		}
	}
	if t.Shape.Isolation.CPU == CPUStrictIsolated {
		cores := t.Shape.Cores()
		for _, o := range n.Tasks {
			if there(o) && o.Shape.Isolation.CPU == CPUStrictIsolated {
				cores += o.Shape.Cores()
			}
		}
		if cores > n.Advertised.IsolableCores {
			return false
		}
	}
	for _, c := range t.Claims {
		d := &n.Devices[c.Device]
		if d.Use.ReleasingLeases == 0 && d.Shares == "" {
			continue
		}
		milli, memory := c.Milli, c.Memory
		if !t.Shape.counted() {
			memory += n.claimed(d, t.Claims)
		}
		for _, o := range n.Tasks {
			if !there(o) {
				continue
			}
			if !t.Shape.counted() && !o.Shape.counted() {
				memory += n.claimed(d, o.Claims)
			}
			for _, oc := range o.Claims {
				if oc.Device != c.Device {
					continue
				}
				if !t.Shape.Isolation.Beside(o.Shape.Isolation) {
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

// releasing reports whether anything on the node is on its way out.
func (n *Node) releasing() bool {
	for i := range n.Resources {
		if n.Resources[i].Releasing > 0 {
			return true
		}
	}
	for i := range n.Devices {
		if n.Devices[i].Use.ReleasingLeases > 0 {
			return true
		}
	}
	return false
}
