// Package nodegroupsizefilter rejects node groups with too few nodes for a job that takes
// whole nodes. No two replicas share a node, so each replica needs nodes of its own.
//
// It counts nodes and does not consider what they hold.
package nodegroupsizefilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "NodeGroupSizeFilter"

// GroupTooSmall is given for a group with fewer nodes than all replicas take together.
const GroupTooSmall engine.Reason = "GroupTooSmall"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: GroupTooSmall, Cure: engine.Grow, Phrase: "too few nodes, want {want}, have {have}", Meaning: "Fewer nodes of the group passed the node filters than all replicas take together, which is replicas × nodes per replica. The subject is the group."},
}

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) Reasons() []engine.ReasonDoc     { return reasons }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddGroupFilter(admit) }

func admit(_ *cluster.Job, w *cluster.WholeNodes, g *cluster.Group, nodes []*cluster.Node) *engine.Rejection {
	want := cluster.MulDiv(int64(w.Replicas), int64(w.NodesPerReplica), 1)
	have := int64(len(nodes))
	if have >= want {
		return nil
	}
	return &engine.Rejection{
		Reason:  GroupTooSmall,
		Cure:    engine.Grow,
		Subject: g.Key.String(),
		Want:    engine.Quantity{Value: want, Unit: engine.Count},
		Have:    engine.Quantity{Value: have, Unit: engine.Count},
	}
}
