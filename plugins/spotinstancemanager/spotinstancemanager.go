// Package spotinstancemanager decides which tasks may run on spot instances: machines
// that cost little and may be withdrawn at any time.
//
//   - A task that is not preemptible is never placed there.
//   - A task that is preemptible is placed there only if no other node is better, so that
//     spot machines become empty and can be returned.
//
// A label tells spot instances from regular ones. The plugin does not consider prices, and
// does not handle the withdrawal of a machine.
//
// A configuration sets the label of spot instances:
//
//	plugins:
//	- name: spot-instance-manager
//	  arguments: {spotLabelKey: karpenter.sh/capacity-type, spotLabelValue: spot}
//
// It is a complete policy with arguments, a filter and a score, and a good starting point
// for a policy of your own.
package spotinstancemanager

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "spot-instance-manager"

// SpotNotAllowed is given for a spot instance and a task that must not be interrupted.
const SpotNotAllowed engine.Reason = "SpotNotAllowed"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: SpotNotAllowed, Cure: engine.Grow | engine.Relax, Phrase: "a spot instance, and the task is not preemptible", Meaning: "The node is a spot instance and the task is not preemptible. The subject is the label that marks spot instances."},
}

// Arguments are the plugin's arguments.
type Arguments struct {
	// SpotLabelKey is the key of the label that marks spot instances;
	// kai.scheduler/instance-type unless given.
	SpotLabelKey string `json:"spotLabelKey"`
	// SpotLabelValue is the value of that label on spot instances; spot unless given.
	SpotLabelValue string `json:"spotLabelValue"`
	// NonSpotScore is the score of regular nodes, from 0 to 100; 100 unless given. Spot
	// instances have the score 0.
	NonSpotScore float64 `json:"nonSpotScore"`
}

type plugin struct {
	engine.FixedHooks
	Arguments
}

// New builds the plugin from its Arguments.
var New = engine.WithArguments(defaults, build)

func defaults() Arguments {
	return Arguments{
		SpotLabelKey:   "kai.scheduler/instance-type",
		SpotLabelValue: "spot",
		NonSpotScore:   100,
	}
}

func build(a Arguments) (engine.Plugin, error) {
	if a.SpotLabelKey == "" || a.SpotLabelValue == "" {
		return nil, fmt.Errorf("spotLabelKey %q and spotLabelValue %q must not be empty, or nodes without the label would count as spot; leave them out to mark spot instances with kai.scheduler/instance-type=spot", a.SpotLabelKey, a.SpotLabelValue)
	}
	if !(a.NonSpotScore >= 0 && a.NonSpotScore <= 100) {
		return nil, fmt.Errorf("nonSpotScore %v is not between 0 and 100, as every score must be; to make it count for more, raise the plugin's weight", a.NonSpotScore)
	}
	return &plugin{Arguments: a}, nil
}

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticFilter(notPreemptible, p.admit)
	engine.EqualNodes(s.Hooks, p.SpotLabelKey)
	s.Hooks.AddStaticScore(nil, p.score)
	engine.EqualNodes(s.Hooks, p.SpotLabelKey)
}

// notPreemptible reports whether the filter applies: only to tasks that are not preemptible.
func notPreemptible(s *cluster.Shape) bool { return !s.Preemptible }

// admit rejects spot instances.
func (p *plugin) admit(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if !p.isSpot(n) {
		return nil
	}
	return &engine.Rejection{
		Reason:  SpotNotAllowed,
		Cure:    engine.Grow | engine.Relax, // regular nodes help, or making the task preemptible
		Subject: p.SpotLabelKey + "=" + p.SpotLabelValue,
	}
}

// score prefers regular nodes, for all tasks.
func (p *plugin) score(_ *cluster.Shape, n *cluster.Node) float64 {
	if p.isSpot(n) {
		return 0
	}
	return p.NonSpotScore
}

func (p *plugin) isSpot(n *cluster.Node) bool { return n.Labels[p.SpotLabelKey] == p.SpotLabelValue }
