// Package resourceutilizationscorer prefers the node group on which a replica leaves the
// least device memory unused: 100 × what it needs ÷ the device memory of the nodes that it
// takes.
//
// It does not check whether the replica fits; CapacityFilter does.
package resourceutilizationscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "ResourceUtilizationScorer"

// unknownNeed is used if the memory that a replica needs is not given. It is less than a
// node has, so the group of nodes with the least memory scores best: a job of unknown
// size should not take the largest machines.
const unknownNeed cluster.Bytes = 1 << 30

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddGroupScore(score) }

// score is at most 100: a group that is too small for the replica is not better than one
// that the replica fills.
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
