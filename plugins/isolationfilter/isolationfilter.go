// Package isolationfilter turns down nodes that cannot keep a task as far from
// others as it asks: because they do not advertise the class, or because what
// the class needs is held at the moment.
//
// Isolation is a filter and never a score: a node can honour a class now or it
// cannot. It fails closed: what is not advertised is not there. It refuses to
// know whose task it is: a tenant's tier makes no class more or less available.
//
// Fewer devices of the kind than needed, held or not, are no matter of
// isolation: NodeResourcesFit turns such nodes down. Whole devices without a
// class need none; a part of a device without one is Shared.
package isolationfilter

import (
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "IsolationFilter"

// The reasons. Where nodes differ, one that waiting cures names the refusal;
// then ClassConflictsWithResourceId, then ClassConflictsWithDaemonMode.
const (
	NoNodeSupportsClass          engine.Reason = "NoNodeSupportsClass"          // not advertised, or too little of it even when idle
	NodesSupportButContended     engine.Reason = "NodesSupportButContended"     // advertised, and held at the moment
	ClassConflictsWithDaemonMode engine.Reason = "ClassConflictsWithDaemonMode" // the node's share mode forbids it: the operator acts
	ClassConflictsWithResourceId engine.Reason = "ClassConflictsWithResourceId" // the request contradicts itself: the client corrects it
)

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: NoNodeSupportsClass, Cure: engine.Grow, Phrase: "does not support {subject}", Meaning: "The node does not advertise the isolation class that the task asks for, or could not honour it even with nobody else there. The subject is the class."},
	{Reason: NodesSupportButContended, Cure: engine.Wait | engine.Evict, Phrase: "fewer than {want} free for {subject}", One: "nothing free for {subject}", Meaning: "The node honours the class, but the cores or devices it takes are held by others. The subject is the class."},
	{Reason: ClassConflictsWithDaemonMode, Cure: engine.Grow, Phrase: "its share mode is exclusive", Meaning: "The task shares devices and the node's share mode is exclusive. An operator can change the mode; otherwise it takes other nodes. The subject is the class."},
	{Reason: ClassConflictsWithResourceId, Phrase: "{subject} contradicts the devices asked for", Meaning: "The class does not go with the devices that the task names: DeviceExclusive with a partition, or PartitionExclusive with a resource whose devices are not partitions. Only a changed request helps. The subject is the class."},
}

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                { return Name }
func (plugin) Reasons() []engine.ReasonDoc { return reasons }

// OnSessionOpen asks for what no waiting cures apart from what others hold: the
// first depends on the node alone.
func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticFilter(matters, support)
	s.Hooks.AddShapeFilter(matters, contention)
}

func matters(s *cluster.Shape) bool { return asksCPU(s) || asksGPU(s) }

func asksCPU(s *cluster.Shape) bool {
	return s.Isolation.CPU != "" && s.Isolation.CPU != cluster.CPUBestEffort
}

// asksGPU reports whether there is a class and a device to keep it on.
func asksGPU(s *cluster.Shape) bool { return !s.Need.None() && s.GPUClass() != "" }

// support turns down nodes that could not honour the classes even if idle.
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

// contention turns down nodes on which others are in the way.
func contention(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if asksCPU(s) {
		if _, free := cores(s, n); free < s.Cores() {
			return contended(string(s.Isolation.CPU), s.Cores(), free)
		}
	}
	if !asksGPU(s) {
		return nil
	}
	usable, free := leases(s, n)
	if want := int64(s.Wanted(int(usable))); usable >= want && free < want {
		return contended(string(s.GPUClass()), want, free)
	}
	return nil
}

// cores are those that the CPU class may take, in all and free: cores of which no
// task holds a part. StrictIsolated takes those of them that can be cut off from
// the machine.
func cores(s *cluster.Shape, n *cluster.Node) (all, free int64) {
	if l := n.Ledger(cluster.CPU); l != nil {
		all, free = l.Capacity/int64(cluster.Whole), l.Free()/int64(cluster.Whole)
	}
	if s.Isolation.CPU == cluster.CPUStrictIsolated {
		all, free = min(all, n.Advertised.IsolableCores), min(free, n.Advertised.IsolableCores-n.Isolated)
	}
	return all, free
}

func supportsCores(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	class := string(s.Isolation.CPU)
	if !n.Advertised.SupportsCPU(s.Isolation.CPU) {
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
	parts := class == cluster.GPUPartitionExclusive && need.Partition == ""
	switch {
	case class == cluster.GPUDeviceExclusive && need.Partition != "":
		// A partition shares its device with the other partitions, whoever holds this one.
		return contradiction(class)
	case parts && need.Resource != "" && n.Usable(s) > 0 && !partitioned(s, n):
		// It names whole devices and asks for partitions. Without a name it may mean those of another node.
		return contradiction(class)
	}
	if !n.Advertised.SupportsGPU(class) || (parts && !partitioned(s, n)) {
		return unsupported(string(class))
	}
	var usable int64
	for i := range n.Devices {
		d := &n.Devices[i]
		switch {
		case !s.Usable(d):
			continue
		case class != cluster.GPUShared && d.Replica:
			return unsupported(string(class)) // replicas of a device keep nobody apart, whatever the books say
		case class == cluster.GPUDeviceExclusive && d.Parent != "":
			return unsupported(string(class)) // a slice, and the device it is cut from has others
		}
		usable++
	}
	if usable < int64(s.Wanted(int(usable))) {
		return nil // too few devices is for others to say
	}
	if class == cluster.GPUShared && n.Advertised.Share == cluster.ShareExclusive {
		return &engine.Rejection{Reason: ClassConflictsWithDaemonMode, Cure: engine.Grow, Subject: string(class), Precedence: 1}
	}
	return nil
}

// leases counts the devices that the need may use, and those on which the class
// may join whoever is there. What is releasing counts as free: the task is then
// promised the room.
func leases(s *cluster.Shape, n *cluster.Node) (usable, free int64) {
	want := int64(s.Wanted(len(n.Devices)))
	for i := range n.Devices {
		d := &n.Devices[i]
		if free >= want {
			return usable, free // enough
		}
		if !s.Usable(d) {
			continue
		}
		usable++
		if d.Use.Leases == 0 || d.Permits(s.Isolation) {
			free++
		}
	}
	return usable, free
}

// partitioned reports whether all the devices that the need may use are slices:
// those of a machine that is cut up evenly are asked for by count, without a profile.
func partitioned(s *cluster.Shape, n *cluster.Node) bool {
	some := false
	for i := range n.Devices {
		d := &n.Devices[i]
		if !s.Usable(d) {
			continue
		}
		if d.Profile == "" && !strings.Contains(d.Product, "-MIG-") {
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
