// Package tainttoleration rejects nodes with taints that a task does not tolerate, and
// nodes that are unschedulable. It gives a lower score to nodes with PreferNoSchedule
// taints that the task does not tolerate.
//
// Taints, tolerations and the unschedulable flag have the meaning that they have in
// Kubernetes. The plugin applies to new tasks only: it evicts nothing.
package tainttoleration

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "TaintToleration"

// The reasons.
const (
	NodeUnschedulable engine.Reason = "NodeUnschedulable" // the node is marked unschedulable
	TaintNotTolerated engine.Reason = "TaintNotTolerated" // the node has a taint that the task does not tolerate
)

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: NodeUnschedulable, Cure: engine.Grow | engine.Relax, Phrase: "closed to new tasks", Meaning: "The node is unschedulable: it is closed to new tasks. The subject is the taint that a task must tolerate to be placed there."},
	{Reason: TaintNotTolerated, Cure: engine.Grow | engine.Relax, Phrase: "taint {subject} not tolerated", Meaning: "The node has a taint, NoSchedule or NoExecute, that the task does not tolerate. The subject is the first such taint, key=value:effect."},
}

// unschedulable is the taint that an unschedulable node is treated as having.
var unschedulable = cluster.Taint{Key: "node.kubernetes.io/unschedulable", Effect: cluster.NoSchedule}

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                { return Name }
func (plugin) Reasons() []engine.ReasonDoc { return reasons }

func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticFilter(nil, admit)
	engine.EqualNodes(s.Hooks)
	s.Hooks.AddStaticScore(nil, score)
	engine.EqualNodes(s.Hooks)
}

func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if n.Unschedulable && !tolerates(s, unschedulable) {
		return reject(NodeUnschedulable, unschedulable)
	}
	for _, t := range n.Taints {
		if t.Effect != cluster.PreferNoSchedule && !tolerates(s, t) {
			return reject(TaintNotTolerated, t)
		}
	}
	return nil
}

// score returns the percentage of the node's PreferNoSchedule taints that the shape
// tolerates, and 100 for a node without such taints.
func score(s *cluster.Shape, n *cluster.Node) float64 {
	total, tolerated := 0, 0
	for _, t := range n.Taints {
		if t.Effect == cluster.PreferNoSchedule {
			total++
			if tolerates(s, t) {
				tolerated++
			}
		}
	}
	if total == 0 {
		return 100
	}
	return 100 * float64(tolerated) / float64(total)
}

func tolerates(s *cluster.Shape, t cluster.Taint) bool {
	for i := range s.Tolerations {
		if s.Tolerations[i].Tolerates(t) {
			return true
		}
	}
	return false
}

// reject formats the taint as kubectl does: without = if it has no value.
func reject(why engine.Reason, t cluster.Taint) *engine.Rejection {
	subject := t.Key
	if t.Value != "" {
		subject += "=" + t.Value
	}
	return &engine.Rejection{
		Reason:  why,
		Cure:    engine.Grow | engine.Relax,
		Subject: subject + ":" + string(t.Effect),
	}
}
