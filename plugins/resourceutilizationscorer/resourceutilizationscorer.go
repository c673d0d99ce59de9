// Package resourceutilizationscorer prefers the node group on which a replica
// wastes the least device memory: 100 × what it needs ÷ what the nodes it takes
// have.
//
// It refuses to know whether the replica fits: that is CapacityFilter's.
package resourceutilizationscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "ResourceUtilizationScorer"

// unknownNeed stands in for a need that nobody gave. It is less than a node has,
// so the group whose nodes have the least memory comes out best: who cannot say
// what they need should not sit on the largest machines.
const unknownNeed cluster.Bytes = 1 << 30

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddGroupScore(score) }

// score stops at 100: a group too small for the replica is no better than one that it fills.
func score(_ *cluster.Job, w *cluster.WholeNodes, g *cluster.Group, _ []*cluster.Node) float64 {
	need := w.Memory
	if need <= 0 {
		need = unknownNeed
	}
	have := cluster.MulDiv(int64(g.DeviceMemory()), int64(w.NodesPerReplica), 1)
	if have <= 0 {
		return 0
	}
	return min(100, 100*float64(need)/float64(have))
}
