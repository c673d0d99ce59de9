// Package isolationfilter rejects nodes that cannot isolate a task as it requests: they do
// not advertise the isolation class, or the cores or devices for it are held by other tasks.
//
// The plugin only filters nodes and never scores them. A class that a node does not advertise
// is not available there. The tier of the queue does not matter.
//
// A node that advertises the class and has too few devices of the requested kind is rejected
// by the plugin NodeResourcesFit and not here. There is one exception: for PartitionExclusive
// without a MIG profile, a node without slices is rejected here. A request for whole devices
// without a class needs no isolation. A request for a fraction of a device without a class has
// the class Shared.
package isolationfilter

import (
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "IsolationFilter"

// The reasons. Nodes may be rejected for different reasons. NodesSupportButContended, which
// waiting cures, then becomes the reason of the refusal. If no node is contended, it is
// ClassConflictsWithResourceId, then ClassConflictsWithDaemonMode, then NoNodeSupportsClass.
const (
	// NoNodeSupportsClass means that the node does not advertise the class, has fewer cores
	// than the class needs even when it is idle, or has devices that cannot be isolated in
	// this way.
	NoNodeSupportsClass engine.Reason = "NoNodeSupportsClass"
	// NodesSupportButContended means that the node supports the class, but other tasks hold
	// cores or devices that the class needs.
	NodesSupportButContended engine.Reason = "NodesSupportButContended"
	// ClassConflictsWithDaemonMode means that the task would share devices, and the share mode
	// of the node is exclusive. An operator can change the mode.
	ClassConflictsWithDaemonMode engine.Reason = "ClassConflictsWithDaemonMode"
	// ClassConflictsWithResourceId means that the request contradicts itself. It must be
	// corrected.
	ClassConflictsWithResourceId engine.Reason = "ClassConflictsWithResourceId"
)

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: NoNodeSupportsClass, Cure: engine.Grow, Phrase: "does not support {subject}", Meaning: "The node does not advertise the isolation class that the task requests, or could not provide it even with no other task on it. The subject is the class."},
	{Reason: NodesSupportButContended, Cure: engine.Wait | engine.Evict, Phrase: "fewer than {want} free for {subject}", One: "nothing free for {subject}", Meaning: "The node supports the class, but the cores or devices that it needs are held by other tasks. The subject is the class."},
	{Reason: ClassConflictsWithDaemonMode, Cure: engine.Grow, Phrase: "its share mode is exclusive", Meaning: "The task shares devices, and the node's share mode is exclusive. An operator can change the mode; otherwise other nodes are needed. The subject is the class."},
	{Reason: ClassConflictsWithResourceId, Phrase: "{subject} contradicts the requested devices", Meaning: "The class contradicts the devices that the task requests: DeviceExclusive with a partition, or PartitionExclusive with a resource that has no partitions. Only a changed request helps. The subject is the class."},
}

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                { return Name }
func (plugin) Reasons() []engine.ReasonDoc { return reasons }

// OnSessionOpen registers a static filter, for rejections that depend on the node alone and that
// waiting does not cure, and a shape filter, for what other tasks hold.
func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticFilter(matters, support)
	engine.EqualNodes(s.Hooks)
	s.Hooks.AddShapeFilter(matters, contention)
	engine.EqualNodes(s.Hooks)
}

func matters(s *cluster.Shape) bool { return asksCPU(s) || asksGPU(s) }

func asksCPU(s *cluster.Shape) bool {
	return s.Isolation.CPU != "" && s.Isolation.CPU != cluster.CPUBestEffort
}

// asksGPU reports whether the task requests devices and has an isolation class for them.
func asksGPU(s *cluster.Shape) bool { return !s.Need.None() && s.GPUClass() != "" }

// support rejects nodes that could not provide the classes even if they were idle. It
// accepts a node that has merely too few devices: NodeResourcesFit rejects it.
func support(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if asksCPU(s) {
		if r := supportsCores(s, n); r != nil {
			return r
		}
	}
	if asksGPU(s) {
		return supportsDevices(s, n)
	}
	return nil
}

// contention rejects nodes on which other tasks hold what the classes need.
func contention(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if asksCPU(s) {
		if _, free := cores(s, n); free < s.Cores() {
			return contended(string(s.Isolation.CPU), s.Cores(), free)
		}
	}
	if !asksGPU(s) {
		return nil
	}
	usable, free := countDevices(s, n)
	if want := int64(s.Wanted(int(usable))); usable >= want && free < want {
		return contended(string(s.GPUClass()), want, free)
	}
	return nil
}

// cores returns how many cores the CPU class may use, in total and free. Free cpu is
// rounded down to whole cores. StrictIsolated may use only the cores that can be isolated.
func cores(s *cluster.Shape, n *cluster.Node) (all, free int64) {
	if l := n.Ledger(cluster.CPU); l != nil {
		all, free = l.Capacity/int64(cluster.Whole), l.Free()/int64(cluster.Whole)
	}
	if s.Isolation.CPU == cluster.CPUStrictIsolated {
		all, free = min(all, n.SupportedIsolation.IsolableCores), min(free, n.SupportedIsolation.IsolableCores-n.Isolated)
	}
	return all, free
}

func supportsCores(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	class := string(s.Isolation.CPU)
	if !n.SupportedIsolation.SupportsCPU(s.Isolation.CPU) {
		return unsupported(class)
	}
	if all, _ := cores(s, n); all < s.Cores() {
		r := unsupported(class)
		r.Want, r.Have = count(s.Cores()), count(all)
		return r
	}
	return nil
}

func supportsDevices(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	class := s.GPUClass()
	need := &s.Need
	wantsPartitions := class == cluster.GPUPartitionExclusive && need.Partition == ""
	switch {
	case class == cluster.GPUDeviceExclusive && need.Partition != "":
		// A partition shares its device with the other partitions, even if it is exclusive itself.
		return contradiction(class)
	case wantsPartitions && need.Resource != "" && n.Usable(s) > 0 && !partitioned(s, n):
		// The request names a resource that is whole devices and asks for partitions. Without
		// a resource name, the same request may be satisfiable on another node.
		return contradiction(class)
	}
	if !n.SupportedIsolation.SupportsGPU(class) || (wantsPartitions && !partitioned(s, n)) {
		return unsupported(string(class))
	}
	if class != cluster.GPUShared {
		for i := range n.Devices {
			if d := &n.Devices[i]; cannotBeExclusive(class, d) && s.Usable(d) {
				return unsupported(string(class))
			}
		}
	}
	if usable := n.Usable(s); usable < s.Wanted(usable) {
		return nil // NodeResourcesFit rejects the node for too few devices
	}
	if class == cluster.GPUShared && n.SupportedIsolation.Share == cluster.ShareExclusive {
		return &engine.Rejection{Reason: ClassConflictsWithDaemonMode, Cure: engine.Grow, Subject: string(class), Precedence: 1}
	}
	return nil
}

// cannotBeExclusive reports whether the device cannot be held as the class, which is not
// Shared, demands. State lists replicas as separate devices, but they share a GPU. Other
// tasks may use other slices of the device of a slice.
func cannotBeExclusive(class cluster.GPUClass, d *cluster.Device) bool {
	return d.Replica || class == cluster.GPUDeviceExclusive && d.Parent != ""
}

// countDevices counts the devices that the task could use if they were idle (usable), and
// those of them that it may use now (free): no other task holds the device, or the classes
// of the tasks allow that they share it. A device that only releasing tasks hold counts as
// free, because the task can be nominated for it. The count ends when enough devices are
// free, so that usable may then be too low.
func countDevices(s *cluster.Shape, n *cluster.Node) (usable, free int64) {
	want := int64(s.Wanted(len(n.Devices)))
	for i := range n.Devices {
		d := &n.Devices[i]
		if free >= want {
			return usable, free
		}
		if !s.Usable(d) {
			continue
		}
		usable++
		if d.Permits(s.Isolation) { // a device that no task holds permits every class
			free++
		}
	}
	return usable, free
}

// partitioned reports whether the task, which names no MIG profile, could use at least one
// device, and all devices that it could use are slices. These are the slices of a node on
// which all devices are divided alike: they are requested by number, and their product
// name contains "-MIG-". Slices that have a profile are not usable for the task.
func partitioned(s *cluster.Shape, n *cluster.Node) bool {
	some := false
	for i := range n.Devices {
		d := &n.Devices[i]
		if !s.Usable(d) {
			continue
		}
		if !strings.Contains(d.Product, "-MIG-") {
			return false
		}
		some = true
	}
	return some
}

func unsupported(class string) *engine.Rejection {
	return &engine.Rejection{Reason: NoNodeSupportsClass, Cure: engine.Grow, Subject: class}
}

func contradiction(class cluster.GPUClass) *engine.Rejection {
	return &engine.Rejection{Reason: ClassConflictsWithResourceId, Subject: string(class), Precedence: 2}
}

func contended(class string, want, free int64) *engine.Rejection {
	return &engine.Rejection{Reason: NodesSupportButContended, Cure: engine.Wait | engine.Evict, Subject: class, Want: count(want), Have: count(free)}
}

func count(n int64) engine.Quantity { return engine.Quantity{Value: max(0, n), Unit: engine.Count} }
