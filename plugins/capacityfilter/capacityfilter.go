// Package capacityfilter rejects node groups with too little device memory for a job
// of whole nodes: for all its replicas together, or for one replica on the nodes that it
// takes.
//
// If only part of a node's memory may be used (WholeNodes.Usable), that part counts.
// The plugin compares sums and does not check how a replica is divided among the devices
// of a node. The nodes of a group may differ in the memory that their devices
// provide. Therefore each node must provide its part of a replica, which is the same
// for all nodes of the replica. If no memory is requested, nothing is compared.
package capacityfilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "CapacityFilter"

// The reasons.
const (
	ReplicaTooLarge     engine.Reason = "ReplicaTooLarge"     // the nodes of one replica do not hold one replica
	GroupMemoryTooSmall engine.Reason = "GroupMemoryTooSmall" // the nodes together do not hold all replicas
	DeviceMemoryUnknown engine.Reason = "DeviceMemoryUnknown" // the memory of the group's devices is not known

	DeviceMemoryTooSmall engine.Reason = "DeviceMemoryTooSmall" // the node is too small for its part of a replica
	DeviceMemoryInUse    engine.Reason = "DeviceMemoryInUse"    // it is large enough, but too little is free
)

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: ReplicaTooLarge, Cure: engine.Grow, Phrase: "one replica needs {want}, its nodes have {have}", Meaning: "The device memory of the nodes that one replica takes is less than the replica needs. More nodes of this group do not help; larger nodes do. The subject is the group."},
	{Reason: GroupMemoryTooSmall, Cure: engine.Grow, Phrase: "all replicas need {want}, the group has {have}", Meaning: "The device memory of the group's nodes that passed the node filters is less than all replicas need together. The subject is the group."},
	{Reason: DeviceMemoryUnknown, Cure: engine.Grow, Phrase: "the memory of its devices is not known", Meaning: "The memory of the group's devices is not known: the nodes come from a dump that counts devices, and lack device labels such as nvidia.com/gpu.memory. The subject is the group."},
	{Reason: DeviceMemoryTooSmall, Cure: engine.Grow, Phrase: "its devices provide less than {want}", Meaning: "Even idle, the devices of the node provide less memory than the node's part of a replica. Reserved memory is not provided, replicas of a device share one memory, and unified memory is at most the memory of the node. The subject is the group."},
	{Reason: DeviceMemoryInUse, Cure: engine.Wait | engine.Evict, Phrase: "its devices have less than {want} free", Meaning: "The devices of the node are large enough for the node's part of a replica, but too little of their memory is free: it is measured as used, or tasks hold it as unified memory. The subject is the group."},
}

type plugin struct {
	filter    filter
	admitNode engine.TaskFilter  // of the filter
	admit     engine.GroupFilter // of the filter
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (*plugin) Name() string                { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	if p.filter == nil {
		p.filter = filter{}
		p.admitNode, p.admit = p.filter.admitNode, p.filter.admit // a method value is allocated each time that it is made
	}
	p.Reopen(s)
	engine.AddWholeFilter(s.Hooks, matters, p.admitNode)
	s.Hooks.AddGroupFilter(p.admit)
}

// Reopen prepares the plugin for the session.
func (p *plugin) Reopen(s *engine.Session) bool {
	clear(p.filter)
	return true
}

func matters(t *cluster.Task, j *cluster.Job) bool {
	w := j.Alternatives[t.Alternative].Whole
	return w != nil && w.Memory > 0
}

// filter is the plugin in one session. For each group it caches the memory of the node
// that provides the most. Capacities do not change during a session.
type filter map[*cluster.Group]cluster.Bytes

func (f filter) most(g *cluster.Group) cluster.Bytes {
	most, known := f[g]
	if !known {
		var any cluster.Shape
		for _, n := range g.Nodes {
			most = max(most, any.DeviceMemory(n))
		}
		f[g] = most
	}
	return most
}

// admitNode rejects nodes with devices that provide less than those of other nodes of the group.
// If no node of the group provides enough, admit rejects the group instead.
func (f filter) admitNode(t *cluster.Task, j *cluster.Job, n *cluster.Node) *engine.Rejection {
	w, g := j.Alternatives[t.Alternative].Whole, n.Group()
	if g == nil {
		return nil // the node has no devices; other filters reject it
	}
	perNode := cluster.Bytes(cluster.MulDivUp(int64(w.Memory), 1, int64(max(1, w.NodesPerReplica))))
	free := t.Shape.FreeDeviceMemory(n)
	if free >= perNode || f.most(g) < perNode {
		return nil
	}
	if ever := t.Shape.DeviceMemory(n); ever < perNode {
		return reject(DeviceMemoryTooSmall, g, int64(perNode), int64(ever))
	}
	r := reject(DeviceMemoryInUse, g, int64(perNode), int64(free))
	r.Cure = engine.Wait | engine.Evict
	return r
}

// admit checks one replica first: if it does not fit, no number of nodes helps, and the
// reason says so. Products saturate at the largest integer, so that no group satisfies
// a request that overflows.
func (f filter) admit(_ *cluster.Job, w *cluster.WholeNodes, g *cluster.Group, nodes []*cluster.Node) *engine.Rejection {
	if w.Memory <= 0 {
		return nil
	}
	if g.Key.Memory <= 0 {
		return reject(DeviceMemoryUnknown, g, int64(w.Memory), 0)
	}
	node := int64(f.most(g))
	if w.Usable > 0 {
		node = min(node, int64(w.Usable))
	}
	if want, have := int64(w.Memory), cluster.MulDiv(node, int64(w.NodesPerReplica), 1); have < want {
		return reject(ReplicaTooLarge, g, want, have)
	}
	want := cluster.MulDiv(int64(w.Memory), int64(w.Replicas), 1)
	have := cluster.MulDiv(node, int64(len(nodes)), 1)
	if have < want {
		return reject(GroupMemoryTooSmall, g, want, have)
	}
	return nil
}

func reject(why engine.Reason, g *cluster.Group, want, have int64) *engine.Rejection {
	return &engine.Rejection{
		Reason:  why,
		Cure:    engine.Grow,
		Subject: g.Key.String(),
		Want:    engine.Quantity{Value: want, Unit: engine.Bytes},
		Have:    engine.Quantity{Value: have, Unit: engine.Bytes},
	}
}
