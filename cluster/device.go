package cluster

// Device is one schedulable accelerator of a node: a whole GPU, a MIG slice of
// one, or one of the replicas that time-slicing or MPS make of it.
type Device struct {
	// What filters look at comes first: two cache lines a device.

	Product string `json:"product,omitempty"` // such as NVIDIA-L4
	// Profile is the MIG profile a slice must be asked for by; "" for a device that is asked for by count.
	Profile string `json:"profile,omitempty"`
	// Resource is the name the device is asked for and booked under.
	Resource string `json:"resource,omitempty"`
	Memory   Bytes  `json:"memory,omitempty"` // all that it has
	// Lost devices stay in the list, so that indexes keep their meaning, and take nothing new.
	Lost     bool  `json:"lost,omitempty"`
	Reserved Bytes `json:"reserved,omitempty"` // memory that no task gets
	// Foreign is memory that a reading found in use and State does not account for
	// (State.Observe).
	Foreign Bytes     `json:"foreign,omitempty"`
	Use     DeviceUse `json:"-"` // what tasks hold of it

	UUID  string   `json:"uuid,omitempty"` // by which reports name it
	Index int      `json:"-"`              // its place in Node.Devices
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

// Claim is what a task holds, or would hold, of one device.
type Claim struct {
	Device int   // index into Node.Devices
	Milli  Milli // thousandths of the device
	Memory Bytes // memory of the device
	Layers int   // of divisible work, how many layers go here
}
