// Package capacityfilter turns down node groups whose device memory cannot hold
// what a job of whole nodes needs: its replicas all together, and each of them
// on the nodes it takes.
//
// Where only part of a node's memory counts (WholeNodes.Usable), that part does.
// It compares sums and refuses to know how a replica is laid out on a node's
// devices. Nodes of a group may differ in what their devices can give, so that a
// node must give its part of a replica: as much as each other node of it.
// A need of 0 means that nobody said: then there is nothing to compare.
package capacityfilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "CapacityFilter"

// The reasons.
const (
	ReplicaTooLarge     engine.Reason = "ReplicaTooLarge"     // one replica's nodes do not hold one replica
	GroupMemoryTooSmall engine.Reason = "GroupMemoryTooSmall" // the nodes together do not hold all replicas
	DeviceMemoryUnknown engine.Reason = "DeviceMemoryUnknown" // nothing says what the nodes hold

	DeviceMemoryTooSmall engine.Reason = "DeviceMemoryTooSmall" // the node never gives its part of a replica
	DeviceMemoryInUse    engine.Reason = "DeviceMemoryInUse"    // it does, but not now
)

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: ReplicaTooLarge, Cure: engine.Grow, Phrase: "one replica wants {want}, its nodes have {have}", Meaning: "The device memory of the nodes that one replica takes is less than the replica needs; more nodes of this group do not help, larger ones do. The subject is the group."},
	{Reason: GroupMemoryTooSmall, Cure: engine.Grow, Phrase: "all replicas want {want}, the group has {have}", Meaning: "The device memory of the group's nodes that passed the node filters is less than all replicas need together. The subject is the group."},
	{Reason: DeviceMemoryUnknown, Cure: engine.Grow, Phrase: "the memory of its devices is not known", Meaning: "The memory of the group's devices is not known: a dump counts them, and its nodes lack device labels such as nvidia.com/gpu.memory. The subject is the group."},
	{Reason: DeviceMemoryTooSmall, Cure: engine.Grow, Phrase: "its devices give less than {want}", Meaning: "Even idle, the devices of the node give less than the node's part of a replica: memory that is reserved is not given, replicas of a device share one memory, and on unified memory it is no more than the node's. The subject is the group."},
	{Reason: DeviceMemoryInUse, Cure: engine.Wait | engine.Evict, Phrase: "its devices have less than {want} free", Meaning: "The devices of the node give the node's part of a replica, but too little of it is free: a reading found it in use, or tasks hold it of unified memory. The subject is the group."},
}

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                { return Name }
func (plugin) Reasons() []engine.ReasonDoc { return reasons }

func (plugin) OnSessionOpen(s *engine.Session) {
	f := filter{}
	s.Hooks.AddTaskFilter(matters, f.admitNode)
	s.Hooks.AddGroupFilter(f.admit)
}

func matters(t *cluster.Task, j *cluster.Job) bool {
	w := j.Alternatives[t.Alternative].Whole
	return w != nil && w.Memory > 0
}

// filter is the plugin in a session. It remembers what the node of each group that
// has most can give: capacities do not change while a session runs.
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

// admitNode turns down nodes whose devices give less than others of the group do.
// Where none gives enough, admit turns the group down.
func (f filter) admitNode(t *cluster.Task, j *cluster.Job, n *cluster.Node) *engine.Rejection {
	w, g := j.Alternatives[t.Alternative].Whole, n.Group()
	if g == nil {
		return nil // it has no devices, as others say
	}
	part := cluster.Bytes(cluster.MulDivUp(int64(w.Memory), 1, int64(max(1, w.NodesPerReplica))))
	free := t.Shape.FreeDeviceMemory(n)
	if free >= part || f.most(g) < part {
		return nil
	}
	if ever := t.Shape.DeviceMemory(n); ever < part {
		return reject(DeviceMemoryTooSmall, g, int64(part), int64(ever))
	}
	r := reject(DeviceMemoryInUse, g, int64(part), int64(free))
	r.Cure = engine.Wait | engine.Evict
	return r
}

// admit looks at one replica first: where that fails, no number of nodes helps,
// and the reason says so. Products stop at the largest number there is: a need
// too large to count is met by no group.
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
