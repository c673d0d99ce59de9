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

// Reasons documents what the plugin gives as reasons.
var Reasons = []engine.ReasonDoc{
	{Reason: NoNodeSupportsClass, Cure: engine.Grow, Meaning: "The node does not advertise the isolation class that the task asks for, or could not honour it even with nobody else there. The subject is the class."},
	{Reason: NodesSupportButContended, Cure: engine.Wait | engine.Evict, Meaning: "The node honours the class, but the cores or devices it takes are held by others. The subject is the class."},
	{Reason: ClassConflictsWithDaemonMode, Cure: engine.Grow, Meaning: "The task shares devices and the node's share mode is exclusive. An operator can change the mode; otherwise it takes other nodes. The subject is the class."},
	{Reason: ClassConflictsWithResourceId, Meaning: "The class does not go with the devices that the task names: DeviceExclusive with a partition, or PartitionExclusive with a resource whose devices are not partitions. Only a changed request helps. The subject is the class."},
}

type plugin struct{}

// New builds the plugin. It has no arguments.
func New(args engine.Arguments) (engine.Plugin, error) {
	if err := args.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	return plugin{}, nil
}

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.AddShapePredicateFn(matters, admit) }
func (plugin) OnSessionClose(*engine.Session)  {}

func matters(s *cluster.Shape) bool { return asksCPU(s) || asksGPU(s) }

func asksCPU(s *cluster.Shape) bool {
	return s.Isolation.CPU != "" && s.Isolation.CPU != cluster.CPUBestEffort
}

// asksGPU reports whether there is a class and a device to keep it on.
func asksGPU(s *cluster.Shape) bool { return !s.Need.None() && s.GPUClass() != "" }

// admit asks for what no waiting cures first, of cores and devices alike.
func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	var waiting *engine.Rejection
	if asksCPU(s) {
		if waiting = cores(s, n); waiting != nil && !waiting.Cure.Transient() {
			return waiting
		}
	}
	if asksGPU(s) {
		if r := devices(s, n); r != nil && (waiting == nil || !r.Cure.Transient()) {
			return r
		}
	}
	return waiting
}

// cores checks the CPU class. WholeCore takes cores of which nobody holds a
// part; StrictIsolated takes cores that can be cut off from the machine.
func cores(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	class := s.Isolation.CPU
	if !n.Advertised.SupportsCPU(class) {
		return unsupported(string(class))
	}
	want := s.Cores()
	var all, free int64
	if class == cluster.CPUStrictIsolated {
		all = n.Advertised.IsolableCores
		free = all - n.Isolated
	} else if l := n.Ledger(cluster.CPU); l != nil {
		all, free = l.Capacity/int64(cluster.Whole), l.Free()/int64(cluster.Whole)
	}
	return compare(string(class), want, all, free)
}

func devices(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	class := s.GPUClass()
	need := &s.Need
	parts := class == cluster.GPUPartitionExclusive && need.Partition == ""
	switch {
	case class == cluster.GPUDeviceExclusive && need.Partition != "":
		// A partition shares its device with the other partitions, whoever holds this one.
		return contradiction(class)
	case parts && need.Resource != "" && n.Usable(s) > 0 && !partitioned(need, n):
		// It names whole devices and asks for partitions. Without a name it may mean those of another node.
		return contradiction(class)
	}
	// Replicas that time-slicing or MPS make of a device keep nobody apart, whatever the books say.
	replicas := class != cluster.GPUShared && n.Sharing.Replicas > 1
	if !n.Advertised.SupportsGPU(class) || replicas || (parts && !partitioned(need, n)) {
		return unsupported(string(class))
	}
	whole := class == cluster.GPUDeviceExclusive
	want := int64(max(1, need.Devices))
	var usable, free int64
	for i := range n.Devices {
		d := &n.Devices[i]
		if free >= want && !need.WholeNode && (!whole || d.Parent == "") {
			continue // it would change nothing
		}
		if !need.Usable(d) {
			continue
		}
		if whole && d.Parent != "" {
			return unsupported(string(class)) // a slice, and the device it is cut from has others
		}
		usable++
		// What is releasing counts as free: the task is then promised the room.
		if d.Use.Leases == 0 || d.Permits(s.Isolation) {
			free++
		}
	}
	if need.WholeNode {
		want = max(want, usable)
	}
	if usable < want {
		return nil
	}
	if class == cluster.GPUShared && n.Advertised.Share == cluster.ShareExclusive {
		return &engine.Rejection{Reason: ClassConflictsWithDaemonMode, Cure: engine.Grow, Subject: string(class), Precedence: 1}
	}
	return compare(string(class), want, usable, free)
}

// partitioned reports whether all the devices that the need may use are slices:
// those of a machine that is cut up evenly are asked for by count, without a profile.
func partitioned(need *cluster.Need, n *cluster.Node) bool {
	some := false
	for i := range n.Devices {
		d := &n.Devices[i]
		if !need.Usable(d) {
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

// compare turns down where fewer are free than wanted; where there are fewer in
// all, waiting does not help.
func compare(class string, want, all, free int64) *engine.Rejection {
	switch {
	case all < want:
		r := unsupported(class)
		r.Want, r.Have = count(want), count(all)
		return r
	case free < want:
		return &engine.Rejection{Reason: NodesSupportButContended, Cure: engine.Wait | engine.Evict, Subject: class, Want: count(want), Have: count(free)}
	}
	return nil
}

func count(n int64) engine.Quantity { return engine.Quantity{Value: max(0, n), Unit: engine.Count} }
