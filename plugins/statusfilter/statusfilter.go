// Package statusfilter rejects nodes that are not ready, and nodes that recently rejected
// a task of the same shape.
//
// It looks at the phase of the node. It applies to new tasks only: tasks that run on a
// node that is no longer ready are not evicted. Nodes that are marked unschedulable are
// handled by TaintToleration.
package statusfilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "StatusFilter"

// NodeNotReady is given for a node in any phase other than READY.
const NodeNotReady engine.Reason = "NodeNotReady"

// RejectedByNode is given for a node that rejected a task of the same shape after it was assigned.
const RejectedByNode engine.Reason = "RejectedByNode"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: NodeNotReady, Cure: engine.Wait, Phrase: "not ready: {subject}", Meaning: "The node is not ready. The subject is its phase."},
	{Reason: RejectedByNode, Cure: engine.Wait, Phrase: "recently rejected a task like it", Meaning: "The node rejected a task of the same shape after it was assigned, and is avoided for a while."},
}

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                { return Name }
func (plugin) Reasons() []engine.ReasonDoc { return reasons }

// OnSessionOpen registers a static filter.
func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticFilter(nil, admit)
	engine.EqualNodes(s.Hooks)
}

func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if n.Ready() {
		if n.Avoided(s) {
			return &engine.Rejection{Reason: RejectedByNode, Cure: engine.Wait}
		}
		return nil
	}
	return &engine.Rejection{Reason: NodeNotReady, Cure: engine.Wait, Subject: string(n.Phase)}
}
