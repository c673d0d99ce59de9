package cluster

import (
	"encoding/json"

	"github.com/berth-project/berth/internal/paged"
)

// Device is one accelerator of a node that tasks can hold: a whole GPU, a MIG slice of
// a GPU, or one of the replicas into which time-slicing or MPS divide a GPU.
type Device struct {
	_ [0]func() // devices cannot be compared by ==, which would compare the addresses of their specs

	// DeviceSpec is what many devices have in common. Equal devices of a State share one
	// record, so it must not be written to: OwnSpec returns one that may be.
	*DeviceSpec

	// Lost is true for a device that is broken, or that its node does not list any more
	// (Gone). It takes no new task. It stays in Node.Devices, so that the indexes of other
	// devices do not change.
	Lost bool `json:"lost,omitempty"`
	// Gone is true for a device that its node does not list any more, but that a task held
	// when the spec of the node changed, or was seen to hold. Such a device is Lost as
	// well. It stays in Node.Devices after the task has released it, until the next NodePut
	// that changes the spec of the node, or until another device gets its index. Snapshots
	// leave it out once no task holds it.
	Gone  bool  `json:"gone,omitempty"`
	Index int32 `json:"-"` // its index in Node.Devices
	// Foreign is memory that is used by processes that Berth did not place. It is
	// determined from NodeRead.
	Foreign Bytes     `json:"foreign,omitempty"`
	Use     DeviceUse `json:"-"` // what tasks hold of the device

	UUID string   `json:"uuid,omitempty"` // unique on its node; facts name the device by it
	ID   DeviceID `json:"id,omitzero"`    // the name by which a Need can select it; State sets it if it is missing or not consistent
}

// DeviceSpec is everything that is reported of a device, apart from its name and its state.
type DeviceSpec struct {
	Product string `json:"product,omitempty"` // such as NVIDIA-L4
	// Profile is the MIG profile by which a slice must be requested; "" for a device that
	// is requested by count.
	Profile string `json:"profile,omitempty"`
	// Resource is the resource name under which the device is requested and charged.
	Resource string `json:"resource,omitempty"`
	Memory   Bytes  `json:"memory,omitempty"` // all memory of the device
	// ByCount is true for a device of a node that itself chooses which of its devices a task
	// gets, as a kubelet does. Which of several equal devices a task holds is then not known:
	// only their number counts.
	ByCount  bool   `json:"byCount,omitempty"`
	Reserved Bytes  `json:"reserved,omitempty"` // memory that is kept for the system, and that no task can have
	Type     string `json:"type,omitempty"`     // the runtime that it supports: cuda, rocm, cann, …
	NUMA     int    `json:"numa,omitempty"`     // the NUMA node; -1 if unknown
	PCIe     string `json:"pcie,omitempty"`     // the PCIe root; "" if unknown
	Link     string `json:"link,omitempty"`     // the NVLink domain; "" if unknown
	// Replica is true for a device that is one of several replicas of a GPU, made by
	// time-slicing or MPS.
	Replica bool `json:"replica,omitempty"`
	// Shares is the UUID of the GPU that this replica shares the memory of with other
	// replicas; "" if the device has memory of its own.
	Shares string `json:"shares,omitempty"`
	// Parent is the UUID of the physical device that a slice or replica is a part of.
	Parent string `json:"parent,omitempty"`
	// ProductResource is the name under which devices of this product are charged, if the
	// quota, limits or weights of a queue name the product. State sets it; see the function
	// ProductResource.
	ProductResource string `json:"-"`
	// Fraction is the fraction of a GPU that a MIG slice with a Profile has, in
	// thousandths; 0 for any other device. State sets it.
	Fraction Milli `json:"-"`
}

// OwnSpec gives the device a spec that it shares with no other device, with the same content, and
// returns it. The caller may write to it until the device is part of a State.
func (d *Device) OwnSpec() *DeviceSpec {
	own := &DeviceSpec{}
	if d.DeviceSpec != nil {
		*own = *d.DeviceSpec
	}
	d.DeviceSpec = own
	return own
}

// MarshalJSON writes the fields in the order that they had when devices did not share their specs,
// so that snapshots stay as they are.
func (d Device) MarshalJSON() ([]byte, error) {
	s := d.DeviceSpec
	if s == nil {
		s = &DeviceSpec{}
	}
	return json.Marshal(struct {
		Product  string   `json:"product,omitempty"`
		Profile  string   `json:"profile,omitempty"`
		Resource string   `json:"resource,omitempty"`
		Memory   Bytes    `json:"memory,omitempty"`
		Lost     bool     `json:"lost,omitempty"`
		ByCount  bool     `json:"byCount,omitempty"`
		Reserved Bytes    `json:"reserved,omitempty"`
		Foreign  Bytes    `json:"foreign,omitempty"`
		UUID     string   `json:"uuid,omitempty"`
		Type     string   `json:"type,omitempty"`
		ID       DeviceID `json:"id,omitzero"`
		NUMA     int      `json:"numa,omitempty"`
		PCIe     string   `json:"pcie,omitempty"`
		Link     string   `json:"link,omitempty"`
		Replica  bool     `json:"replica,omitempty"`
		Shares   string   `json:"shares,omitempty"`
		Parent   string   `json:"parent,omitempty"`
		Gone     bool     `json:"gone,omitempty"`
	}{s.Product, s.Profile, s.Resource, s.Memory, d.Lost, s.ByCount, s.Reserved, d.Foreign, d.UUID, s.Type, d.ID, s.NUMA, s.PCIe, s.Link, s.Replica, s.Shares, s.Parent, d.Gone})
}

// deviceSpecs holds the specs that the devices of a fleet share.
type deviceSpecs struct {
	shared map[DeviceSpec]*DeviceSpec
	most   int // if there are more specs, those that no node has are dropped
}

// leastDeviceSpecs is how many specs are kept without looking for those that no node has.
const leastDeviceSpecs = 1024

// share makes the devices of the node share their specs with equal devices of other nodes. nodes
// are the nodes of the fleet, and some may be nil.
func (p *deviceSpecs) share(n *Node, nodes *paged.Table[Node]) {
	if p.shared == nil {
		p.shared, p.most = map[DeviceSpec]*DeviceSpec{}, leastDeviceSpecs
	}
	var last, known *DeviceSpec // devices that follow each other are mostly equal
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.DeviceSpec != last {
			last = d.DeviceSpec
			if known = p.shared[*last]; known == nil {
				own := *last // the record of the caller may be written to
				known = &own
				p.shared[own] = known
			}
		}
		d.DeviceSpec = known
	}
	if len(p.shared) > p.most {
		clear(p.shared)
		for slot := range nodes.Len() {
			n := nodes.At(slot)
			for i := 0; n != nil && i < len(n.Devices); i++ {
				s := n.Devices[i].DeviceSpec
				p.shared[*s] = s
			}
		}
		p.most = max(leastDeviceSpecs, 2*len(p.shared))
	}
}

// DeviceUse is the ledger of a device. Figures that begin with Releasing are what
// releasing tasks still hold; the others are what other tasks hold or have reserved.
type DeviceUse struct {
	Milli     Milli // thousandths of the device that are held
	Memory    Bytes // memory that is held
	Leases    int32 // how many tasks hold a part of the device
	Exclusive int32 // how many of these tasks tolerate no other task on the device
	Sessions  int32 // how many of the tasks are SessionExclusive with a named session
	Nodes     int32 // how many of the tasks hold the node as a whole (Need.WholeNode)
	Beside    Bytes // what is held of the shared memory through other replicas

	ReleasingMilli  Milli
	ReleasingMemory Bytes
	ReleasingLeases int32

	// Session is the named session of the SessionExclusive tasks, the first by name if facts report
	// several; nil: none.
	Session *string
}

// SessionName returns the named session of the SessionExclusive tasks, or "" if there is none.
func (u *DeviceUse) SessionName() string {
	if u.Session == nil {
		return ""
	}
	return *u.Session
}

// equal reports whether both ledgers have the same content.
func (u DeviceUse) equal(o DeviceUse) bool {
	if u.SessionName() != o.SessionName() {
		return false
	}
	o.Session = u.Session
	return u == o
}

// Claim is what a task holds, or would hold, of one device.
type Claim struct {
	Device int   // index in Node.Devices
	Milli  Milli // thousandths of the device
	Memory Bytes // memory of the device
	Layers int   // how many layers of divisible work are on the device; 0 for other work
}
