// Package noderesourcesfit turns down nodes on which a task does not fit: its
// resources, and its devices by count, memory, share, whole node or layers. It
// tells room that others hold from room that is not there at all.
//
// What it lets through, Node.Choose can place and State.Place accepts, isolation
// classes aside: those are IsolationFilter's. It refuses to know which node is
// better, and what a task may not have although there is room.
package noderesourcesfit

import (
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

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: ResourceTooSmall, Cure: never, Phrase: "less {subject} than {want}", Meaning: "Even empty, the node has less of the resource than the task asks for, or none; on unified memory, than it takes with its devices. The subject is the resource; have is the node's capacity."},
	{Reason: InsufficientResource, Cure: held, Phrase: "less free {subject} than {want}", Meaning: "The node has enough of the resource, but too little of it is free. The subject is the resource; have is what is free."},
	{Reason: TooFewDevices, Cure: never, Phrase: "fewer than {want} devices", One: "no such device", Meaning: "Even idle, the node has fewer devices of the kind than the task needs."},
	{Reason: InsufficientDevices, Cure: held, Phrase: "fewer than {want} free devices", One: "no free device", Meaning: "The node has enough devices of the kind, but others hold them; have counts those that can take the task now."},
	{Reason: GPUMemoryTooSmall, Cure: never, Phrase: "devices smaller than {want}", About: "{subject} give less than {want}", Meaning: "Even idle, the devices are too small: have is the memory of the smallest device that the task would have to take. Where the subject is so many devices together, it is what they give in sum."},
	{Reason: GPUMemoryInUse, Cure: held, Phrase: "less than {want} free on enough devices", About: "{subject} have less than {want} free", Meaning: "The devices are big enough, but too little of their memory is free: have is the memory free on the fullest device that the task would have to take. Where the subject is so many devices together, it is what they give in sum."},
	{Reason: InsufficientDeviceShare, Cure: held, Phrase: "less than {want} free on enough devices", Meaning: "Too large a part of the devices is held: have is what is free of the fullest device that the task would have to take."},
	{Reason: NodeInUse, Cure: held, Phrase: "fewer than {want} idle devices, and it takes the whole node", One: "no idle device, and it takes the whole node", Meaning: "The task takes a whole node and some of its devices are held; have counts the idle ones."},
}

// plugin remembers what it said last: most nodes that are full are short of the same,
// and a rejection that does not change can be given again.
type plugin struct {
	short cluster.Shortage
	said  *engine.Rejection
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (*plugin) Name() string                { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// OnSessionOpen asks apart what the node could ever hold: that depends on the
// node alone, and where it could not, waiting is no cure.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticFilter(nil, possible)
	s.Hooks.AddShapeFilter(nil, p.fit)
}

// possible is fit for the node with no task on it. What fits beside others fits
// there as well, and needs no closer look; on unified memory that is not so simple.
func possible(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if roomy(s, n) || !n.Unified && supplied(s, n) && n.Feasible(s) {
		return nil
	}
	if capable(s, n) {
		if short, known := s.EverShort(n); known {
			return forGood.devices(short)
		}
	}
	return ever(s, n.Emptied())
}

// capable reports whether the node has as much of everything but devices.
func capable(s *cluster.Shape, n *cluster.Node) bool {
	for i := range s.Resources {
		if want := &s.Resources[i]; want.Value > 0 && n.Capacity(want.Name) < want.Value {
			return false
		}
	}
	return true
}

// ever is the closer look at a node with no task on it.
func ever(s *cluster.Shape, empty *cluster.Node) *engine.Rejection {
	if supplied(s, empty) && empty.Feasible(s) {
		return nil
	}
	return why(s, empty, &forGood)
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
	return s.Roomy(n)
}

// fit is asked about nodes that possible lets through, so whatever is short is
// held by others.
func (p *plugin) fit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if !supplied(s, n) {
		return why(s, n, &forNow)
	}
	if n.Feasible(s) {
		return nil
	}
	if short := s.Short(n); p.said == nil || short != p.short {
		p.short, p.said = short, forNow.devices(short)
	}
	return p.said
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
