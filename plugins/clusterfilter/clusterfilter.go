// Package clusterfilter keeps a task in the cell (the cluster) that its job names.
//
// It does not choose cells: a job with several cells has an alternative for each of
// them, and the engine tries them in order.
package clusterfilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "ClusterFilter"

// CellMismatch is given for a node outside the cell that the task requests.
const CellMismatch engine.Reason = "CellMismatch"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: CellMismatch, Cure: engine.Grow | engine.Relax, Phrase: "not in cell {subject}", Meaning: "The node is not in the cell that the task requests. The subject is that cell."},
}

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                { return Name }
func (plugin) Reasons() []engine.ReasonDoc { return reasons }

// OnSessionOpen registers a static filter.
func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticFilter(matters, admit)
	engine.EqualNodes(s.Hooks)
}

func matters(s *cluster.Shape) bool { return s.Cell != "" }

func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if n.Cell == s.Cell {
		return nil
	}
	return &engine.Rejection{
		Precedence: engine.OtherKind,
		Reason:     CellMismatch,
		Cure:       engine.Grow | engine.Relax,
		Subject:    s.Cell,
	}
}
