// Package noderesourcesfit rejects nodes on which a task does not fit: its resources, or
// its devices by count, memory, fraction, whole node or layers. Its reasons tell whether
// the room is held by other tasks or does not exist at all.
//
// If it accepts a node, Node.Choose finds devices for the task and State.Place accepts the
// placement, apart from isolation classes, which IsolationFilter checks. It does not compare
// nodes, and does not check quotas and limits.
package noderesourcesfit

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "NodeResourcesFit"

// The reasons. Those that end in TooSmall or begin with TooFew mean that the task would not fit
// on the empty node either. The others mean that it would, but that too much is in use, by
// other tasks or by foreign processes.
const (
	ResourceTooSmall        engine.Reason = "ResourceTooSmall"        // the node's capacity is too small
	InsufficientResource    engine.Reason = "InsufficientResource"    // the capacity is large enough, but too little is free
	TooFewDevices           engine.Reason = "TooFewDevices"           // the node has fewer devices of the kind than needed
	InsufficientDevices     engine.Reason = "InsufficientDevices"     // it has enough devices, but too few are free
	TooFewLinkedDevices     engine.Reason = "TooFewLinkedDevices"     // no NVLink domain of the node has as many devices as needed
	LinkedDevicesInUse      engine.Reason = "LinkedDevicesInUse"      // an NVLink domain has enough devices, but too few are free
	GPUMemoryTooSmall       engine.Reason = "GPUMemoryTooSmall"       // the devices are too small, even idle
	GPUMemoryInUse          engine.Reason = "GPUMemoryInUse"          // they are large enough, but too little is free
	InsufficientDeviceShare engine.Reason = "InsufficientDeviceShare" // too large a fraction of the devices is held
	NodeInUse               engine.Reason = "NodeInUse"               // a whole node is needed, and part of it is held
)

const (
	cureOtherNode   = engine.Grow | engine.Relax
	cureWaitOrEvict = engine.Wait | engine.Evict
)

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: ResourceTooSmall, Cure: cureOtherNode, Phrase: "less {subject} than {want}", Meaning: "Even empty, the node has less of the resource than the task requests, or none. On unified memory, what the task takes of its devices counts as memory too. The subject is the resource; have is the node's capacity."},
	{Reason: InsufficientResource, Cure: cureWaitOrEvict, Phrase: "less free {subject} than {want}", Meaning: "The node has enough of the resource, but too little of it is free. The subject is the resource; have is what is free."},
	{Reason: TooFewDevices, Cure: cureOtherNode, Phrase: "fewer than {want} devices", One: "no such device", Meaning: "Even idle, the node has fewer devices of the kind than the task needs."},
	{Reason: InsufficientDevices, Cure: cureWaitOrEvict, Phrase: "fewer than {want} free devices", One: "no free device", Meaning: "The node has enough devices of the kind, but other tasks hold them. Have is the number of devices that can take the task now."},
	{Reason: TooFewLinkedDevices, Cure: cureOtherNode, Phrase: "fewer than {want} devices in one NVLink domain", Meaning: "The task requires that its devices are in one NVLink domain (`sameLink`). Even idle, no domain of the node has as many devices that can take the task. Have is the number of devices of the domain that has most. Devices of which no domain is known, MIG slices and shared devices are in no domain together."},
	{Reason: LinkedDevicesInUse, Cure: cureWaitOrEvict, Phrase: "fewer than {want} free devices in one NVLink domain", Meaning: "The task requires that its devices are in one NVLink domain (`sameLink`). A domain of the node has enough devices, and the node has enough free devices, but they are not in one domain. Have is the number of free devices of the domain that has most."},
	{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Phrase: "devices smaller than {want}", About: "{subject} {have}, {want} needed", Meaning: "Even idle, the devices are too small. Have is the memory of the smallest device that the task would have to take. If the subject is a number of devices together, have is the sum of their memory."},
	{Reason: GPUMemoryInUse, Cure: cureWaitOrEvict, Phrase: "too few devices with {want} free", About: "{subject} {have} free, {want} needed", Meaning: "The devices are large enough, but too little of their memory is free. Have is the free memory of the fullest device that the task would have to take. If the subject is a number of devices together, have is the sum of their free memory."},
	{Reason: InsufficientDeviceShare, Cure: cureWaitOrEvict, Phrase: "too few devices with a free share of {want}", About: "{subject} {have} free, {want} needed", Meaning: "Too large a fraction of the devices is held. Have is the free fraction of the fullest device that the task would have to take. If the task also needs a number of bytes, as a model does, the message has both amounts in bytes."},
	{Reason: NodeInUse, Cure: cureWaitOrEvict, Phrase: "fewer than {want} idle devices, and the task takes the whole node", One: "no idle device, and the task takes the whole node", Meaning: "The task takes a whole node, and some devices of the node are held. Have is the number of idle devices."},
}

// plugin caches rejections of fit. Most full nodes have equal shortages, and these share one
// rejection.
type plugin struct {
	engine.FixedHooks
	filter engine.ShapeFilter // fit; a method value is allocated each time that it is made

	shorts [kept]short // of devices: the last one of each hash
	lacks  [kept]lack  // of other resources: the last one of each hash
}

// kept is how many rejections of each kind are kept at most.
const kept = 1024

// short is a shortage of devices, and the rejection for it.
type short struct {
	shortage  cluster.Shortage
	rejection *engine.Rejection
}

// lack is a shortage of a resource, and the rejection for it.
type lack struct {
	name       string
	want, have int64
	rejection  *engine.Rejection
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin {
	p := &plugin{}
	p.filter = p.fit
	return p
})

func (*plugin) Name() string                { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// OnSessionOpen registers a separate static filter for what the node could hold if it were
// empty: that does not depend on what is free, and waiting does not cure it.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticFilter(nil, possible)
	engine.EqualNodes(s.Hooks)
	s.Hooks.AddShapeFilter(nil, p.filter)
	engine.EqualNodes(s.Hooks)
	engine.AddQuickReject(s.Hooks, lacks)
}

// possible checks the node as if it were empty. What fits beside other tasks also fits on the
// empty node and needs no further check. On unified memory that is not concluded, because how
// much a task takes of its devices there depends on how much is free.
func possible(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if isRoomy(s, n) || !n.Unified && hasFree(s, n) && n.Feasible(s) {
		return nil
	}
	if hasCapacity(s, n) {
		if short, known := s.EverShort(n); known {
			return ifEmpty.devices(short)
		}
	}
	return checkEmpty(s, n.Emptied())
}

// hasCapacity reports whether the node has enough capacity of all resources other than devices.
func hasCapacity(s *cluster.Shape, n *cluster.Node) bool {
	for i := range s.Resources {
		if want := &s.Resources[i]; want.Value > 0 && n.Capacity(want.Name) < want.Value {
			return false
		}
	}
	return true
}

// checkEmpty is the complete check. The node must have no task on it.
func checkEmpty(s *cluster.Shape, empty *cluster.Node) *engine.Rejection {
	if hasFree(s, empty) && empty.Feasible(s) {
		return nil
	}
	return why(s, empty, &ifEmpty)
}

// isRoomy is a quick check for common cases. If it returns false, the task may still fit.
func isRoomy(s *cluster.Shape, n *cluster.Node) bool {
	for i := range s.Resources {
		want := &s.Resources[i]
		if want.Value <= 0 {
			continue
		}
		if l := n.Ledger(want.Name); l == nil || l.Capacity < want.Value {
			return false
		}
	}
	return s.FitsEmptied(n)
}

// fit checks the node as it is. It is called only for nodes that possible accepts, so what is
// missing is in use, by other tasks or by foreign processes.
func (p *plugin) fit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if !hasFree(s, n) {
		return p.lacking(s, n)
	}
	if n.Feasible(s) {
		return nil
	}
	shortage := s.Short(n)
	k := &p.shorts[hash(shortage.Want, shortage.Have)]
	if k.rejection == nil || k.shortage != shortage {
		*k = short{shortage, asIs.devices(shortage)}
	}
	return k.rejection
}

// lacks reports whether a few sums of the node show that fit rejects it.
func lacks(s *cluster.Shape, n *cluster.Node) bool { return n.Lacks(s) }

// lacking returns the rejection of a node that has too little of a resource.
func (p *plugin) lacking(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	name, want, have := lackOf(s, n)
	l := &p.lacks[hash(want, have)]
	if l.rejection == nil || l.name != name || l.want != want || l.have != have {
		*l = lack{name, want, have, asIs.resources(name, want, have)}
	}
	return l.rejection
}

// hash mixes two amounts.
func hash(a, b int64) uint {
	const odd = 0x9e3779b97f4a7c15                       // 2⁶⁴ divided by the golden ratio
	return uint((uint64(a)*odd ^ uint64(b)) * odd >> 54) // kept is 2¹⁰
}

// hasFree reports whether enough is free of all resources other than devices.
func hasFree(s *cluster.Shape, n *cluster.Node) bool {
	at := 0
	for i := range s.Resources {
		want := &s.Resources[i]
		if want.Value <= 0 {
			continue
		}
		// Both lists are sorted by name, so one pass over the node's is enough.
		for at < len(n.Resources) && n.Resources[at].Name != want.Name {
			at++
		}
		if at == len(n.Resources) || n.Resources[at].Free() < want.Value {
			return false
		}
	}
	return true
}
