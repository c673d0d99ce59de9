// Package noderesourcesfit turns down nodes on which a task does not fit: its
// resources, and its devices by count, memory, share, whole node or layers. It
// tells room that others hold from room that is not there at all.
//
// What it lets through, Node.Choose can place and State.Place accepts, isolation
// classes aside: those are IsolationFilter's. It refuses to know which node is
// better, and what a task may not have although there is room.
package noderesourcesfit

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "NodeResourcesFit"

// The reasons. Those that end in TooSmall, and TooFewDevices, hold for the empty
// node as well; the others are about what is held by others.
const (
	ResourceTooSmall        engine.Reason = "ResourceTooSmall"        // the node never had that much
	InsufficientResource    engine.Reason = "InsufficientResource"    // it has, but not free
	TooFewDevices           engine.Reason = "TooFewDevices"           // fewer devices of the kind than needed, even idle
	InsufficientDevices     engine.Reason = "InsufficientDevices"     // enough devices, but held
	GPUMemoryTooSmall       engine.Reason = "GPUMemoryTooSmall"       // devices too small, even idle
	GPUMemoryInUse          engine.Reason = "GPUMemoryInUse"          // big enough, but not free
	InsufficientDeviceShare engine.Reason = "InsufficientDeviceShare" // too large a part of the devices is held
	NodeInUse               engine.Reason = "NodeInUse"               // a whole node is needed, and part of it is held
)

const (
	never = engine.Grow | engine.Relax
	held  = engine.Wait | engine.Evict
)

// Reasons documents what the plugin gives as reasons.
var Reasons = []engine.ReasonDoc{
	{Reason: ResourceTooSmall, Cure: never, Meaning: "Even empty, the node has less of the resource than the task asks for, or none. The subject is the resource; have is the node's capacity."},
	{Reason: InsufficientResource, Cure: held, Meaning: "The node has enough of the resource, but too little of it is free. The subject is the resource; have is what is free."},
	{Reason: TooFewDevices, Cure: never, Meaning: "Even idle, the node has fewer devices of the kind than the task needs."},
	{Reason: InsufficientDevices, Cure: held, Meaning: "The node has enough devices of the kind, but others hold them; have counts those that can take the task now."},
	{Reason: GPUMemoryTooSmall, Cure: never, Meaning: "Even idle, the devices are too small: have is the memory of the smallest device that the task would have to take. With the subject \"together\" it is the memory of all its devices."},
	{Reason: GPUMemoryInUse, Cure: held, Meaning: "The devices are big enough, but too little of their memory is free: have is the memory free on the fullest device that the task would have to take. With the subject \"together\" it is the memory of all its devices."},
	{Reason: InsufficientDeviceShare, Cure: held, Meaning: "Too large a part of the devices is held: have is what is free of the fullest device that the task would have to take."},
	{Reason: NodeInUse, Cure: held, Meaning: "The task takes a whole node and some of its devices are held; have counts the idle ones."},
}

// together is the subject where devices are too small only in sum.
const together = "together"

// inSum is the subject of the memory of so many devices.
func inSum(devices int) string {
	if devices == 1 {
		return ""
	}
	return together
}

type plugin struct{}

// New builds the plugin. It has no arguments.
func New(args engine.Arguments) (engine.Plugin, error) {
	if err := args.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	return plugin{}, nil
}

func (plugin) Name() string                   { return Name }
func (plugin) OnSessionClose(*engine.Session) {}

// OnSessionOpen asks apart what the node could ever hold: that depends on the
// node alone, and nobody should be told to wait where it could not.
func (plugin) OnSessionOpen(s *engine.Session) {
	s.AddStaticPredicateFn(nil, possible)
	s.AddShapePredicateFn(nil, fit)
}

// possible is fit for the node with nobody on it. What fits beside others fits
// there as well, and needs no closer look; on unified memory that is not so simple.
func possible(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if roomy(s, n) || !n.Unified && supplied(s, n) && n.Feasible(s) {
		return nil
	}
	if r, known := apart(s, n); known {
		return r
	}
	return fit(s, emptied(n))
}

// roomy is a quick yes for the plain cases; a no means that a closer look is due.
func roomy(s *cluster.Shape, n *cluster.Node) bool {
	for i := range s.Resources {
		want := &s.Resources[i]
		if want.Value <= 0 {
			continue
		}
		if l := n.Ledger(want.Name); l == nil || l.Capacity < want.Value {
			return false
		}
	}
	need := &s.Need
	if need.None() {
		return true
	}
	if need.WholeNode {
		// Who takes all devices whole can have them once they are idle.
		return !n.Unified && need.Memory == 0 && need.Share == 0 && need.SumAtLeast == 0 && need.Layers == nil && !s.Isolation.Exclusive() &&
			len(n.Devices) > 0 && len(n.Devices) >= need.Devices && n.Usable(s) == len(n.Devices)
	}
	return !n.Unified && !need.SameProduct && need.Layers == nil && need.SumAtLeast == 0 && n.Usable(s) >= need.Devices
}

func fit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	switch {
	case !supplied(s, n):
		return short(s, n)
	case s.Need.None() || n.Feasible(s):
		return nil
	}
	return devices(s, n)
}

// supplied reports whether enough is free of everything but devices.
func supplied(s *cluster.Shape, n *cluster.Node) bool {
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

// short turns down a node that lacks a resource. What no waiting cures comes
// first, devices included: nobody should wait for cores on a node whose devices
// are too small anyway.
func short(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	var waiting *engine.Rejection
	for _, want := range s.Resources {
		var capacity, free int64
		if l := n.Ledger(want.Name); l != nil {
			capacity, free = l.Capacity, l.Free()
		}
		if capacity < want.Value {
			return resource(ResourceTooSmall, never, want.Name, want.Value, capacity)
		}
		if free < want.Value && waiting == nil {
			waiting = resource(InsufficientResource, held, want.Name, want.Value, free)
		}
	}
	if !s.Need.None() && !n.Feasible(s) {
		if r := devices(s, n); !r.Cure.Transient() {
			return r
		}
	}
	return waiting
}

// devices says why the node's devices will not do; what no waiting cures comes first.
func devices(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	need := &s.Need
	if need.WholeNode {
		return wholeNode(s, n)
	}
	t := survey(s, n)
	want := max(1, need.Devices)
	switch {
	case t.kind < want:
		return count(TooFewDevices, never, want, t.kind)
	case t.big < want:
		return amount(GPUMemoryTooSmall, never, "", int64(need.Memory), t.least(s, n, want, memory), engine.Bytes)
	case need.SumAtLeast > 0 || need.Layers != nil:
		return sum(s, n, t, want)
	}
	return taken(s, n, t, want)
}

// taken turns down for devices that others hold.
func taken(s *cluster.Shape, n *cluster.Node, t tally, want int) *engine.Rejection {
	need := &s.Need
	switch {
	case s.Isolation.Exclusive() || (need.Share == 0 && need.Memory == 0):
		return count(InsufficientDevices, held, want, t.takers)
	case need.Share > 0:
		return amount(InsufficientDeviceShare, held, "", int64(need.Share), t.least(s, n, want, freeShare), engine.Devices)
	}
	return amount(GPUMemoryInUse, held, "", int64(need.Memory), t.least(s, n, want, freeMemory), engine.Bytes)
}

func wholeNode(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	need := &s.Need
	t := survey(s, n)
	want := max(1, need.Devices)
	var sum cluster.Bytes
	working := 0
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Lost {
			working++
			sum += d.Memory
		}
	}
	switch {
	case t.kind < max(want, working): // too few, or some are of another kind
		return count(TooFewDevices, never, max(want, working), t.kind)
	case t.big < working:
		return amount(GPUMemoryTooSmall, never, "", int64(need.Memory), t.least(s, n, working, memory), engine.Bytes)
	case sum < need.SumAtLeast:
		return amount(GPUMemoryTooSmall, never, together, int64(need.SumAtLeast), int64(sum), engine.Bytes)
	}
	return count(NodeInUse, held, working, t.takers)
}

// sum turns down where it is the devices together that must give enough. Whether
// that is for good, the empty node says.
func sum(s *cluster.Shape, n *cluster.Node, t tally, want int) *engine.Rejection {
	need := &s.Need
	at, reason, cure := n, GPUMemoryInUse, held
	if r, known := apart(s, n); known && r == nil {
		if t.takers < want {
			return taken(s, n, t, want)
		}
		return amount(reason, cure, inSum(want), int64(need.SumAtLeast), t.most(s, at, want, claim), engine.Bytes)
	} else if known {
		return r
	}
	empty := emptied(n)
	if !empty.Feasible(s) {
		at, reason, cure = empty, GPUMemoryTooSmall, never
	} else if t.takers < want && need.Layers == nil {
		return taken(s, n, t, want)
	}
	if need.Layers == nil {
		return amount(reason, cure, inSum(want), int64(need.SumAtLeast), t.most(s, at, want, claim), engine.Bytes)
	}
	l := need.Layers
	if need.Devices == 1 && l.Total == 1 { // all or nothing: what it takes says more than how many layers
		return amount(reason, cure, "", int64(l.Fixed+l.Bytes), t.least(s, at, 1, freeMemory), engine.Bytes)
	}
	least := l.Total
	if l.Spill {
		least = l.Least
	}
	most := need.Devices
	if most == 0 {
		most = len(n.Devices)
	}
	onDevices := min(t.most(s, at, most, layers), int64(l.Total))
	spilt := s.Resources.Of(cluster.Memory) + (int64(l.Total)-onDevices)*int64(l.Bytes)
	free := int64(0)
	if ram := at.Ledger(cluster.Memory); ram != nil {
		free = ram.Free()
	}
	if onDevices >= int64(least) && free < spilt {
		// The devices take their part, but the rest has nowhere to go.
		if reason = InsufficientResource; cure == never {
			reason = ResourceTooSmall
		}
		return resource(reason, cure, cluster.Memory, spilt, free)
	}
	return amount(reason, cure, together, int64(least)*int64(l.Bytes), onDevices*int64(l.Bytes), engine.Bytes)
}

// untouched reports whether nobody holds anything of the node.
func untouched(n *cluster.Node) bool {
	for i := range n.Resources {
		if n.Resources[i].Used != 0 {
			return false
		}
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; d.Use.Leases != 0 || d.Foreign != 0 {
			return false
		}
	}
	return true
}

// emptied is the node with nobody on it.
func emptied(n *cluster.Node) *cluster.Node {
	if untouched(n) {
		return n
	}
	e := *n
	e.Devices = slices.Clone(n.Devices)
	for i := range e.Devices {
		e.Devices[i].Use, e.Devices[i].Foreign = cluster.DeviceUse{}, 0
	}
	e.Resources = slices.Clone(n.Resources)
	for i := range e.Resources {
		e.Resources[i].Used, e.Resources[i].Releasing, e.Resources[i].Foreign = 0, 0, 0
	}
	return &e
}

func resource(reason engine.Reason, cure engine.Cure, name string, want, have int64) *engine.Rejection {
	return &engine.Rejection{Reason: reason, Cure: cure, Subject: name,
		Want: engine.AmountOf(name, want), Have: engine.AmountOf(name, max(0, have))}
}

func count(reason engine.Reason, cure engine.Cure, want, have int) *engine.Rejection {
	return amount(reason, cure, "", int64(want), int64(have), engine.Count)
}

func amount(reason engine.Reason, cure engine.Cure, subject string, want, have int64, unit engine.Unit) *engine.Rejection {
	return &engine.Rejection{Reason: reason, Cure: cure, Subject: subject,
		Want: engine.Quantity{Value: want, Unit: unit}, Have: engine.Quantity{Value: max(0, have), Unit: unit}}
}
