package cluster

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Node is a machine that offers resources and devices.
type Node struct {
	Name          string            `json:"name,omitempty"`          // unique in a State
	Cell          string            `json:"cell,omitempty"`          // the set of nodes that it is scheduled with; "" where there are no cells
	Labels        map[string]string `json:"labels,omitempty"`        // as in Kubernetes
	Taints        []Taint           `json:"taints,omitempty"`        // which tasks must tolerate
	Unschedulable bool              `json:"unschedulable,omitempty"` // it keeps what runs on it and takes nothing new
	// Phase says how far the node is from taking tasks; "" and READY: it does.
	Phase Phase `json:"phase,omitempty"`
	// Unified is set where devices and tasks share one memory: what is claimed of a
	// device is booked as memory of the node too.
	Unified bool `json:"unified,omitempty"`

	// What filters read of every node stands together.
	sample  *Device // shared by all nodes whose devices are all of one kind and size, and none lost; else nil
	filled  int     // devices that are held whole
	sliced  bool    // devices share memory
	uniform bool    // all devices are of one kind and size

	// Resources are the node's ledgers, sorted by name. Devices have ledgers of their own.
	Resources []Ledger `json:"resources,omitempty"`
	Devices   []Device `json:"devices,omitempty"` // by index; lost ones are among them
	// DeviceResource is the name of the devices that are asked for by count.
	DeviceResource string     `json:"deviceResource,omitempty"`
	Sharing        Sharing    `json:"sharing,omitzero"`    // how its physical devices became several each
	Advertised     Advertised `json:"advertised,omitzero"` // the classes of isolation that it can honour
	// Artifacts are the files that are there, and whether they are ready.
	Artifacts map[string]ArtifactState `json:"artifacts,omitempty"`
	// Defect says why the node's device labels cannot be believed; such a node takes no task that needs devices.
	Defect *Defect `json:"defect,omitempty"`

	// Avoids are the shapes that the node turned down a short while ago.
	Avoids []Avoided `json:"avoids,omitempty"`

	// Isolated counts cores held by StrictIsolated tasks.
	Isolated int64 `json:"-"`
	// Tasks that are on the node or have reserved room on it, sorted by ID.
	Tasks []*Task `json:"-"`

	// Sums over the devices that count.
	deviceCapacity, deviceUsed int64
	leavable                   int64 // thousandths of devices that preemptible tasks hold which run

	absent       bool // it is gone, or not known yet, and tasks are on it
	countedTasks int  // tasks on it whose devices are not known
	unreported   bool // tasks were seen on it, and it was not
	revision     uint64
	slot         int
	group        *Group
	version      uint64
	spec         uint64 // the version at which anything but its ledgers last changed
	freed        uint64 // the version at which room was last given back
}

// Ledger is one resource of a node. Used counts what tasks hold or have
// reserved; LeftOut what scores count for them beside that; Releasing what evicted tasks still hold physically; Foreign what a
// reading of unified memory found in use and State does not account for.
type Ledger struct {
	Name      string `json:"name,omitempty"`
	Capacity  int64  `json:"capacity,omitempty"`
	Used      int64  `json:"-"`
	LeftOut   int64  `json:"-"`
	Releasing int64  `json:"-"`
	Foreign   int64  `json:"-"`
}

// Free is what is neither held, reserved, nor found in use.
func (l *Ledger) Free() int64 { return l.Capacity - l.Foreign - l.Used }

// Sharing says how one physical device became several.
type Sharing struct {
	Strategy string `json:"strategy,omitempty"` // "", "time-slicing" or "mps"
	Replicas int    `json:"replicas,omitempty"` // per physical device; 0 or 1: none
}

// Phase is how a node is, as it says of itself or as it is said of it.
type Phase string

// PhaseReady is the only phase in which a node takes tasks.
const PhaseReady Phase = "READY"

// Ready reports whether the node takes tasks.
func (n *Node) Ready() bool { return n.Phase == "" || n.Phase == PhaseReady }

// Closed reports whether the node takes nothing new, for whatever reason of its own.
func (n *Node) Closed() bool { return n.Unschedulable || !n.Ready() }

// Sample is a device that stands for all of the node's, which are of one kind and size and
// none of them lost; nil where they are not. It has product, profile, fraction, resource
// and type, and nothing else. Nodes share it: to read it costs less than to read a device
// of each node.
func (n *Node) Sample() *Device { return n.sample }

// ArtifactState is how far a file has come on a node.
type ArtifactState string

// Ready files can be used at once.
const Ready ArtifactState = "READY"

// Defect is a label that is missing or makes no sense.
type Defect struct {
	Label   string `json:"label,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Slot is the node's place in the State's table: dense, and reused after removal.
func (n *Node) Slot() int { return n.slot }

// Version grows with every change of the node and never shrinks.
func (n *Node) Version() uint64 { return n.version }

// SpecVersion is the version at which the node itself last changed: labels,
// taints, capacities, devices. Tasks that come and go leave it alone.
func (n *Node) SpecVersion() uint64 { return n.spec }

// Freed is the version at which room on the node was last given back, or the node
// itself changed. What a statement takes back does not count.
func (n *Node) Freed() uint64 { return max(n.freed, n.spec) }

// Group is the group the node belongs to; nil without devices.
func (n *Node) Group() *Group { return n.group }

// Ledger returns the node's ledger of the resource, or nil.
func (n *Node) Ledger(name string) *Ledger {
	for i := range n.Resources {
		if n.Resources[i].Name == name {
			return &n.Resources[i]
		}
	}
	return nil
}

// Capacity is how much of the resource the node has in all, devices included.
func (n *Node) Capacity(name string) int64 {
	if name == n.DeviceResource {
		return n.DeviceCapacity()
	}
	if l := n.Ledger(name); l != nil {
		return l.Capacity
	}
	return 0
}

// DeviceCapacity is the node's devices of its DeviceResource, in thousandths.
func (n *Node) DeviceCapacity() int64 { return n.deviceCapacity }

// DeviceUsed is how much of DeviceCapacity is held or reserved.
func (n *Node) DeviceUsed() int64 { return n.deviceUsed }

// Unfilled counts the devices that are not held whole: no other takes anything.
func (n *Node) Unfilled() int { return len(n.Devices) - n.filled }

// Emptied is the node with no task on it and nothing found in use; the node itself
// where that is so. It is for looking at, and not part of a State.
func (n *Node) Emptied() *Node {
	if !slices.ContainsFunc(n.Resources, func(l Ledger) bool { return l.Used != 0 || l.Foreign != 0 }) && !anyDevice(n.Devices, (*Device).isInUse) {
		return n
	}
	e := *n
	e.filled, e.deviceUsed = 0, 0
	e.Devices = slices.Clone(n.Devices)
	for i := range e.Devices {
		e.Devices[i].Use, e.Devices[i].Foreign = DeviceUse{}, 0
	}
	e.Resources = slices.Clone(n.Resources)
	for i := range e.Resources {
		l := &e.Resources[i]
		*l = Ledger{Name: l.Name, Capacity: l.Capacity}
	}
	return &e
}

// Most bounds from above how many tasks of the shape the node could ever hold at
// once, with no other task on it.
func (n *Node) Most(s *Shape) int {
	most := int64(math.MaxInt32)
	for _, a := range s.Resources {
		if a.Value > 0 {
			most = min(most, n.Capacity(a.Name)/a.Value)
		}
	}
	if s.Isolation.CPU == CPUStrictIsolated {
		most = min(most, n.Advertised.IsolableCores/s.Cores())
	}
	if s.Need.None() {
		return int(most)
	}
	parts := int64(0) // that the devices could take in all
	for i := range n.Devices {
		if d := &n.Devices[i]; s.Usable(d) {
			parts += s.part().times(s, Whole, d.Memory)
		}
	}
	return int(min(most, s.set().tasks(s, parts)))
}

// Room is how many tasks of the shape fit beside what is held, at most: it only
// adds up, and what really fits may be less.
func (n *Node) Room(s *Shape) int {
	room := int64(math.MaxInt32)
	for _, a := range s.Resources {
		if a.Value > 0 {
			l := n.Ledger(a.Name)
			if l == nil {
				return 0
			}
			room = min(room, max(0, l.Free())/a.Value)
		}
	}
	if s.Isolation.CPU == CPUStrictIsolated {
		room = min(room, max(0, n.Advertised.IsolableCores-n.Isolated)/s.Cores())
	}
	switch {
	case room == 0 || !n.Feasible(s):
		return 0
	case s.Need.None():
		return int(room)
	}
	parts := int64(0) // that the devices could take in all
	for i := range n.Devices {
		if d := &n.Devices[i]; s.Takes(d) {
			parts += s.part().times(s, d.FreeMilli(), d.Free())
		}
	}
	return int(min(room, s.set().tasks(s, parts)))
}

// Lacks reports whether it is plain to see that no task of the shape fits beside
// what is held: by the ledgers, and by how many devices have anything left.
func (n *Node) Lacks(s *Shape) bool {
	for i := range s.Resources {
		if a := &s.Resources[i]; a.Value > 0 {
			if l := n.Ledger(a.Name); l == nil || l.Free() < a.Value {
				return true
			}
		}
	}
	return n.Unfilled() < s.Need.Devices
}

// compare orders tasks by ID; forms of a job may have tasks of the same name.
func (t *Task) compare(o *Task) int {
	if c := strings.Compare(t.ID, o.ID); c != 0 {
		return c
	}
	return cmp.Compare(t.Ref().Alternative, o.Ref().Alternative)
}
