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
	Cell          string            `json:"cell,omitempty"`          // the cell that the node belongs to; "" means that it belongs to none
	Labels        map[string]string `json:"labels,omitempty"`        // as in Kubernetes
	Taints        []Taint           `json:"taints,omitempty"`        // a task must tolerate them, as in Kubernetes
	Unschedulable bool              `json:"unschedulable,omitempty"` // no new task is placed on it; running tasks stay

	// The next fields are here because there is room for them beside Unschedulable.
	absent             bool  // the node was removed or never reported, and tasks are on it
	unreported         bool  // tasks were seen on the node, but the node itself was never reported
	unknownDeviceTasks int32 // number of tasks on it with unknown devices, which recount chooses

	// Phase is the reported condition of the node. A node takes new tasks only if its
	// phase is "" or READY.
	Phase Phase `json:"phase,omitempty"`
	// Unified is true if devices and host share one physical memory. Memory that is
	// claimed of a device then also counts as used memory of the node.
	Unified bool `json:"unified,omitempty"`

	// Filters read the following fields of every node. They are kept next to each
	// other, so that they share cache lines.
	sliced  bool  // some devices share their memory with other replicas
	uniform bool  // all devices are of one kind and size
	filled  int32 // number of devices that are held whole
	touched int32 // number of devices of which a share is held
	slot    int32
	spec    uint64  // the version at which the node changed last, other than in its ledgers
	sample  *Device // the device that Sample returns
	wiring  *wiring // how the devices are connected; nil if it makes no difference

	// Resources are the node's ledgers, sorted by name. Devices are accounted for in
	// Device.Use, not here.
	Resources []Ledger `json:"resources,omitempty"`
	Devices   []Device `json:"devices,omitempty"` // by index, lost devices included
	// DeviceResource is the resource name under which tasks request devices by count.
	DeviceResource     string             `json:"deviceResource,omitempty"`
	Sharing            Sharing            `json:"sharing,omitzero"`    // how physical devices are divided into replicas
	SupportedIsolation SupportedIsolation `json:"advertised,omitzero"` // the classes of isolation that the node supports
	// Artifacts are the files on the node, by name, and whether they are ready for use.
	Artifacts map[string]ArtifactState `json:"artifacts,omitempty"`
	// Defect is not nil if the device labels of the node are missing or inconsistent.
	// Such a node takes no task that requests devices.
	Defect *Defect `json:"defect,omitempty"`

	// Avoids lists the shapes that the node rejected recently, and until when tasks of
	// these shapes are not placed on it.
	Avoids []Avoided `json:"avoids,omitempty"`

	// Isolated is the number of cores that StrictIsolated tasks hold.
	Isolated int64 `json:"-"`
	// Tasks are the tasks that are on the node or have room reserved on it, sorted by ID.
	Tasks []*Task `json:"-"`

	// Sums over the devices that are listed under DeviceResource and are not lost, in
	// thousandths of a device.
	deviceCapacity, deviceUsed int64
	preemptibleMilli           int64 // thousandths of devices that running preemptible tasks hold

	revision uint64 // of the last NodePut, as its source numbers them
	group    *Group
	version  uint64
	freed    uint64 // the version at which room was freed last; unlike other versions, an undo restores it
}

// Ledger accounts for one resource of a node: in thousandths of a core for cpu, in
// bytes for memory, in units otherwise.
type Ledger struct {
	Name      string `json:"name,omitempty"`
	Capacity  int64  `json:"capacity,omitempty"` // what the node offers to tasks
	Used      int64  `json:"-"`                  // held by tasks or reserved for them
	LeftOut   int64  `json:"-"`                  // what scores count in addition to Used; see LeftOut
	Releasing int64  `json:"-"`                  // still held physically by tasks that were evicted
	Foreign   int64  `json:"-"`                  // of unified memory: used by processes that Berth did not place
}

// Free returns what is neither held, nor reserved, nor foreign. It is negative if the
// node shrank below what its tasks hold.
func (l *Ledger) Free() int64 { return l.Capacity - l.Foreign - l.Used }

// Sharing says how each physical device of a node is divided into replicas.
type Sharing struct {
	Strategy string `json:"strategy,omitempty"` // "", "time-slicing" or "mps"
	Replicas int    `json:"replicas,omitempty"` // per physical device; 0 or 1 means that devices are not divided
}

// Phase is the condition of a node as it is reported: READY, or any other word.
type Phase string

// PhaseReady is the phase of a node that takes tasks.
const PhaseReady Phase = "READY"

// Ready reports whether the phase of the node lets it take tasks.
func (n *Node) Ready() bool { return n.Phase == "" || n.Phase == PhaseReady }

// Closed reports whether the node takes no new task, because it is unschedulable or
// not ready.
func (n *Node) Closed() bool { return n.Unschedulable || !n.Ready() }

// Sample returns a device that represents all devices of the node. It returns nil if the
// devices differ in kind or size, or if one of them is lost. Only product, profile,
// fraction, resource and type of the sample are set. Nodes with equal devices share one
// sample, so reading it is cheaper than reading a device of each node.
func (n *Node) Sample() *Device { return n.sample }

// ArtifactState is the state of a file on a node: READY, or any other word.
type ArtifactState string

// Ready is the state of a file that can be used at once.
const Ready ArtifactState = "READY"

// Defect names a device label of a node that is missing or inconsistent.
type Defect struct {
	Label   string `json:"label,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Slot returns the index of the node in State's table of nodes. Slots are dense, and
// the slot of a removed node is used again.
func (n *Node) Slot() int { return int(n.slot) }

// Version grows with every change of the node and never shrinks.
func (n *Node) Version() uint64 { return n.version }

// SpecVersion returns the version at which the node itself changed last: its labels,
// taints, capacities, devices, status or avoided shapes. Placing and evicting tasks
// does not change it.
func (n *Node) SpecVersion() uint64 { return n.spec }

// Freed returns the version at which room on the node was freed last, or at which the
// node itself changed last, whichever is later. Room that a statement takes and then
// returns by an undo does not count.
func (n *Node) Freed() uint64 { return max(n.freed, n.spec) }

// Group returns the node group that the node belongs to. It is nil if the node has no
// devices, or only lost ones.
func (n *Node) Group() *Group { return n.group }

// Ledger returns the node's ledger of the resource, or nil if the node does not have
// the resource.
func (n *Node) Ledger(name string) *Ledger {
	for i := range n.Resources {
		if n.Resources[i].Name == name {
			return &n.Resources[i]
		}
	}
	return nil
}

// Capacity returns how much of the resource the node offers to tasks in all. The
// capacity of DeviceResource is in thousandths of a device.
func (n *Node) Capacity(name string) int64 {
	if name == n.DeviceResource {
		return n.DeviceCapacity()
	}
	if l := n.Ledger(name); l != nil {
		return l.Capacity
	}
	return 0
}

// DeviceCapacity returns the number of devices that have the name DeviceResource and
// are not lost, in thousandths of a device.
func (n *Node) DeviceCapacity() int64 { return n.deviceCapacity }

// DeviceUsed returns how much of DeviceCapacity is held or reserved, in thousandths.
func (n *Node) DeviceUsed() int64 { return n.deviceUsed }

// Unfilled returns the number of devices that are not held whole. Only these can take
// another task.
func (n *Node) Unfilled() int { return len(n.Devices) - int(n.filled) }

// Emptied returns a copy of the node in which the ledgers of resources and devices are
// empty, without foreign use. Tasks and Isolated are not changed. Emptied returns the node
// itself if no resource is used or reserved and no device is in use. The copy is read-only
// and not part of a State.
func (n *Node) Emptied() *Node {
	if !slices.ContainsFunc(n.Resources, func(l Ledger) bool { return l.Used != 0 || l.Foreign != 0 }) && !anyDevice(n.Devices, (*Device).isInUse) {
		return n
	}
	e := *n
	e.filled, e.touched, e.deviceUsed = 0, 0, 0
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

// Most returns an upper bound for how many tasks of the shape the node could ever hold
// at once, with no other task on it.
func (n *Node) Most(s *Shape) int {
	most := int64(math.MaxInt32)
	for _, a := range s.Resources {
		if a.Value > 0 {
			most = min(most, n.Capacity(a.Name)/a.Value)
		}
	}
	if s.Isolation.CPU == CPUStrictIsolated {
		most = min(most, n.SupportedIsolation.IsolableCores/s.Cores())
	}
	if s.Need.None() {
		return int(most)
	}
	parts := int64(0) // how many times the idle devices offer what a task takes of one device
	for i := range n.Devices {
		if d := &n.Devices[i]; s.Usable(d) {
			parts += s.part().partsWithin(s, Whole, d.Memory)
		}
	}
	return int(min(most, s.set().maxTasks(s, parts)))
}

// Room returns an upper bound for how many more tasks of the shape fit on the node as
// it is. It only compares sums, so that fewer tasks may really fit.
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
		room = min(room, max(0, n.SupportedIsolation.IsolableCores-n.Isolated)/s.Cores())
	}
	switch {
	case room == 0 || !n.Feasible(s):
		return 0
	case s.Need.None():
		return int(room)
	}
	parts := int64(0) // how many times the devices still offer what a task takes of one device
	for i := range n.Devices {
		if d := &n.Devices[i]; s.Takes(d) {
			parts += s.part().partsWithin(s, d.FreeMilli(), d.Free())
		}
	}
	return int(min(room, s.set().maxTasks(s, parts)))
}

// Lacks is a cheap test that no task of the shape fits on the node as it is. It looks
// only at the ledgers and at the number of devices that are not held, or not held whole. If
// it returns false, a task may still not fit.
func (n *Node) Lacks(s *Shape) bool {
	if want := s.Need.Devices; want > 0 {
		able := n.Unfilled()
		if s.holdsWhole() {
			able = len(n.Devices) - int(n.touched)
		}
		if able < want {
			return true
		}
	}
	for i := range s.Resources {
		if a := &s.Resources[i]; a.Value > 0 {
			if l := n.Ledger(a.Name); l == nil || l.Free() < a.Value {
				return true
			}
		}
	}
	return false
}

// compare orders tasks by ID, then by alternative: two alternatives of one job may
// have tasks with the same name.
func (t *Task) compare(o *Task) int {
	if c := strings.Compare(t.ID, o.ID); c != 0 {
		return c
	}
	return cmp.Compare(t.Ref().Alternative, o.Ref().Alternative)
}
