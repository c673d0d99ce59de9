// Package tainttoleration keeps tasks off nodes that are closed to them, and
// away from nodes that would rather not have them.
//
// It knows taints, tolerations and the closed flag, as Kubernetes defines them,
// and refuses to know who set them and why. It concerns new tasks only: who
// must leave a node is not decided here.
package tainttoleration

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "TaintToleration"

// The reasons.
const (
	NodeUnschedulable engine.Reason = "NodeUnschedulable" // somebody closed the node
	TaintNotTolerated engine.Reason = "TaintNotTolerated" // it has a taint that the task does not tolerate
)

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: NodeUnschedulable, Cure: engine.Grow | engine.Relax, Phrase: "closed to new tasks", Meaning: "The node is closed to new tasks. The subject is the taint to tolerate for a task that shall run there all the same."},
	{Reason: TaintNotTolerated, Cure: engine.Grow | engine.Relax, Phrase: "taint {subject} not tolerated", Meaning: "The node has a taint, NoSchedule or NoExecute, that the task does not tolerate. The subject is the first such taint, key=value:effect."},
}

// unschedulable is the taint that a closed node counts as having.
var unschedulable = cluster.Taint{Key: "node.kubernetes.io/unschedulable", Effect: cluster.NoSchedule}

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                { return Name }
func (plugin) Reasons() []engine.ReasonDoc { return reasons }

func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticFilter(nil, admit)
	s.Hooks.AddStaticScore(nil, score)
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

// score is 100 × the part of the node's PreferNoSchedule taints that the shape
// tolerates; a node without any has nothing against anybody: 100.
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

// reject writes the taint as kubectl does: without = where it has no value.
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
