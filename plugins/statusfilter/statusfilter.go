// Package statusfilter keeps tasks off nodes that are not ready, and off nodes that
// turned down a task of the same shape a short while ago.
//
// It reads the node's phase and refuses to know what it takes to become ready,
// and how long. It concerns new tasks only: what runs on a node that stops being
// ready stays. Nodes that somebody closed are TaintToleration's.
package statusfilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "StatusFilter"

// NodeNotReady is a node in any phase but READY.
const NodeNotReady engine.Reason = "NodeNotReady"

// RejectedByNode is a node that turned down a task of the shape after it was assigned.
const RejectedByNode engine.Reason = "RejectedByNode"

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: NodeNotReady, Cure: engine.Wait, Phrase: "not ready: {subject}", Meaning: "The node is not ready. The subject is the phase that it is in."},
	{Reason: RejectedByNode, Cure: engine.Wait, Phrase: "turned down a task like it a short while ago", Meaning: "The node turned down a task like this one after it was assigned, and is avoided for a while."},
}

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) Reasons() []engine.ReasonDoc     { return reasons }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddStaticFilter(nil, admit) }

func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if n.Ready() {
		if n.Avoided(s) {
			return &engine.Rejection{Reason: RejectedByNode, Cure: engine.Wait}
		}
		return nil
	}
	return &engine.Rejection{Reason: NodeNotReady, Cure: engine.Wait, Subject: string(n.Phase)}
}
