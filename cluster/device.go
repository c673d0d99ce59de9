package cluster

import "slices"

// Device is one schedulable accelerator of a node: a whole GPU, a MIG slice of
// one, or one of the replicas that time-slicing or MPS make of it.
type Device struct {
	// What filters look at comes first: two cache lines a device.

	Product string `json:"product,omitempty"`
	// Profile is the MIG profile a slice must be asked for by; "" for a device that is asked for by count.
	Profile string `json:"profile,omitempty"`
	// Resource is the name the device is asked for and booked under.
	Resource string `json:"resource,omitempty"`
	Memory   Bytes  `json:"memory,omitempty"`
	// Lost devices stay in the list, so that indexes keep their meaning, and take nothing new.
	Lost bool `json:"lost,omitempty"`
	// Reserved is memory that no task gets. Foreign is memory that a reading found
	// in use and State does not account for (State.Observe).
	Reserved Bytes     `json:"reserved,omitempty"`
	Foreign  Bytes     `json:"foreign,omitempty"`
	Use      DeviceUse `json:"-"`

	UUID  string   `json:"uuid,omitempty"`
	Index int      `json:"-"`
	Type  string   `json:"type,omitempty"` // the runtime it speaks: cuda, rocm, cann, …
	ID    DeviceID `json:"id,omitzero"`    // by which it can be selected; the State fills it in
	NUMA  int      `json:"numa,omitempty"` // -1 where unknown
	Link  string   `json:"link,omitempty"` // NVLink domain, "" where unknown
	// Replica is true for one of several that time-slicing or MPS make of a device.
	Replica bool `json:"replica,omitempty"`
	// Shares is the UUID of the device whose memory a replica shares with others of
	// it; "": its memory is its own.
	Shares string `json:"shares,omitempty"`
	// Parent is the UUID of the physical device a slice or replica is cut from.
	Parent string `json:"parent,omitempty"`
	// ProductResource names its product among the devices of its resource. The
	// State fills it in; see ProductResource.
	ProductResource string `json:"-"`
	// Fraction is the fraction of a GPU that a MIG slice is which is asked for by its
	// profile; 0 for any other device. The State fills it in.
	Fraction Milli `json:"-"`
	// Gone: it is not listed any more. It stays, as a lost one, while a task holds it.
	Gone bool `json:"gone,omitempty"`
}

// nameDevices gives devices that have none the ID by which they can be selected: of
// each type the lowest numbers that are free. A device keeps its ID for as long as
// the node is known, whatever the order in which devices are listed.
func (n *Node) nameDevices() {
	var taken map[DeviceID]bool // nil while no device has an ID from before
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.ID == (DeviceID{}) {
			continue
		}
		if taken == nil {
			taken = map[DeviceID]bool{}
		}
		if d.ID.Node != n.Name || d.ID.Type != d.Type || taken[d.ID] {
			d.ID = DeviceID{}
			continue
		}
		taken[d.ID] = true
	}
	next := map[string]int{}
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.ID != (DeviceID{}) || d.Gone {
			continue
		}
		id := DeviceID{Node: n.Name, Type: d.Type, Index: next[d.Type]}
		for taken[id] {
			id.Index++
		}
		d.ID, next[d.Type] = id, id.Index+1
	}
}

// DeviceUse is a device's ledger. Used counts what tasks
// hold or have reserved; Releasing counts what evicted tasks still hold physically.
type DeviceUse struct {
	Milli     Milli
	Memory    Bytes
	Leases    int32 // tasks that hold a part of the device
	Exclusive int32 // of these, how many tolerate no other beside them
	Session   string
	Sessions  int32 // leases of the named session
	Nodes     int32 // leases that are of every device of the node
	Beside    Bytes // that is held of the same memory through other replicas

	ReleasingMilli  Milli
	ReleasingMemory Bytes
	ReleasingLeases int32
}

// FreeMilli is the part of the device that is neither held nor reserved.
func (d *Device) FreeMilli() Milli { return Whole - d.Use.Milli }

// Room is the device memory that tasks can have in all.
func (d *Device) Room() Bytes { return max(0, d.Memory-d.Reserved-d.Foreign) }

// Free is the device memory that is neither held, reserved, nor found in use.
func (d *Device) Free() Bytes { return d.Room() - d.Use.Memory - d.Use.Beside }

// negligible is foreign memory that does not keep a task from having a device to
// itself: drivers and displays take some hundred MiB of an idle one.
const negligible Bytes = 1 << 30

// Part is the share of the device that so much of its memory stands for: rounded
// down, so that claims that fill the memory exactly fit, and at least one
// thousandth, so that no claim is for nothing.
func (d *Device) Part(memory Bytes) Milli {
	if d.Memory <= 0 {
		return Whole
	}
	return max(1, Milli(MulDiv(int64(memory), int64(Whole), int64(d.Memory))))
}

// Idle reports whether no task holds any of the device, not even one that is leaving.
func (d *Device) Idle() bool { return d.Use.Leases == 0 && d.Use.ReleasingLeases == 0 }

// Claim is what a task holds, or would hold, of one device.
type Claim struct {
	Device int // index into Node.Devices
	Milli  Milli
	Memory Bytes
	Layers int // of divisible work, how many layers go here
}

// claimFor is what the need takes of the device: a whole, a share, or memory.
// Memory and milli are kept in step, so that neither can be booked twice.
func (n *Need) claimFor(i int, d *Device) Claim {
	switch {
	case n.Share > 0 && n.Share < Whole:
		return Claim{Device: i, Milli: n.Share, Memory: Bytes(MulDiv(int64(d.Memory), int64(n.Share), int64(Whole)))}
	case n.Memory > 0 && d.Memory > 0:
		return Claim{Device: i, Milli: d.Part(n.Memory), Memory: n.Memory}
	default:
		return Claim{Device: i, Milli: Whole, Memory: d.Room()}
	}
}

// Kind reports whether the device is of the kind the need asks for, whatever its
// size, held or not.
func (n *Need) Kind(d *Device) bool {
	if d.Lost || d.Profile != n.Partition || (n.Resource != "" && n.Resource != d.Resource) {
		return false
	}
	return (len(n.Products) == 0 || containsString(n.Products, d.Product)) &&
		(len(n.Types) == 0 || containsString(n.Types, d.Type))
}

// Selects reports whether the device is one of those selected, if any are.
func (n *Need) Selects(d *Device) bool {
	if len(n.Selected) == 0 {
		return true
	}
	_, found := slices.BinarySearchFunc(n.Selected, d.ID, DeviceID.Compare)
	return found
}

// Usable reports whether the device is of the kind, may be taken and is large
// enough, held or not.
func (n *Need) Usable(d *Device) bool { return n.suits(d) && n.Selects(d) }

// suits reports whether the device is of the kind and large enough, selected or not.
func (n *Need) suits(d *Device) bool {
	if n.Memory > d.Memory-d.Reserved || !n.Kind(d) {
		return false
	}
	return d.Reserved == 0 || n.Share == 0 || n.whole() || n.claimFor(0, d).Memory <= d.Memory-d.Reserved
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

// Takes reports whether the device can take the shape's claim beside what it holds.
func (s *Shape) Takes(d *Device) bool {
	n := &s.Need
	if !n.Usable(d) || !d.Permits(s.Isolation) {
		return false
	}
	if n.WholeNode && d.Use.Nodes > 0 {
		return false // tasks that take whole nodes never share one, however little they take
	}
	if s.Isolation.Exclusive() || n.whole() {
		return d.Use.Milli == 0 && d.Use.Memory == 0 && d.Foreign <= negligible && n.Memory <= d.Room()
	}
	if n.Layers != nil {
		return n.Layers.fit(d) > 0
	}
	if n.Share > 0 {
		return n.Share <= d.FreeMilli() && Bytes(MulDiv(int64(d.Memory), int64(n.Share), int64(Whole))) <= d.Free()
	}
	return n.Memory <= d.Free() && d.Part(n.Memory) <= d.FreeMilli()
}

func containsString(list []string, s string) bool {
	for i := range list {
		if list[i] == s {
			return true
		}
	}
	return false
}
