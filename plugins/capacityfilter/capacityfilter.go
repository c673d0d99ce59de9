// Package capacityfilter turns down node groups whose device memory cannot hold
// what a job of whole nodes needs: its replicas all together, and each of them
// on the nodes it takes.
//
// Where only part of a node's memory counts (WholeNodes.Usable), that part does.
// It compares sums and refuses to know how a replica is laid out on its nodes.
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
)

// Reasons documents what the plugin gives as reasons.
var Reasons = []engine.ReasonDoc{
	{Reason: ReplicaTooLarge, Cure: engine.Grow, Meaning: "The device memory of the nodes that one replica takes is less than the replica needs; more nodes of this group do not help, larger ones do. The subject is the group."},
	{Reason: GroupMemoryTooSmall, Cure: engine.Grow, Meaning: "The device memory of the group's nodes that passed the node filters is less than all replicas need together. The subject is the group."},
	{Reason: DeviceMemoryUnknown, Cure: engine.Grow, Meaning: "The memory of the group's devices is not known: a dump counts them, and its nodes lack device labels such as nvidia.com/gpu.memory. The subject is the group."},
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
func (plugin) OnSessionOpen(s *engine.Session) { s.AddGroupPredicateFn(admit) }
func (plugin) OnSessionClose(*engine.Session)  {}

// admit looks at one replica first: where that fails, no number of nodes helps,
// and the reason says so. Products stop at the largest number there is: a need
// too large to count is met by no group.
func admit(_ *cluster.Job, w *cluster.WholeNodes, g *cluster.Group, nodes []*cluster.Node) *engine.Rejection {
	if w.Memory <= 0 {
		return nil
	}
	node := int64(g.DeviceMemory())
	if w.Usable > 0 {
		node = int64(w.Usable)
	}
	if node == 0 {
		return reject(DeviceMemoryUnknown, g, int64(w.Memory), 0)
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
