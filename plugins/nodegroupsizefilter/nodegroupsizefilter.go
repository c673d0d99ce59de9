// Package nodegroupsizefilter turns down node groups with too few nodes for a
// job that wants whole ones: no two replicas share a node, so each of them
// takes its nodes to itself.
//
// It counts nodes and refuses to know what they hold.
package nodegroupsizefilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "NodeGroupSizeFilter"

// GroupTooSmall is a group with fewer nodes than all replicas take together.
const GroupTooSmall engine.Reason = "GroupTooSmall"

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: GroupTooSmall, Cure: engine.Grow, Phrase: "too few nodes, want {want}, have {have}", Meaning: "Fewer nodes of the group passed the node filters than all replicas take together: replicas × nodes per replica, since no two replicas share a node. The subject is the group."},
}

type plugin struct{}

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
