// Package spotinstancemanager decides who may run on spot instances: machines
// that cost little and can be taken away at any time.
//
//   - A task that must not be interrupted never goes there.
//   - A task that may be interrupted goes there last, so that spot machines run
//     empty and can be given back.
//
// A label tells spot instances from regular ones. The plugin refuses to know
// prices, and what happens when a machine is taken away.
//
// This is a whole policy, and the one to copy for a policy of your own:
// arguments, a filter, a score.
package spotinstancemanager

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "spot-instance-manager"

// SpotNotAllowed is a task that must not be interrupted, on a node that can go at any time.
const SpotNotAllowed engine.Reason = "SpotNotAllowed"

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: SpotNotAllowed, Cure: engine.Grow | engine.Relax, Phrase: "a spot instance, and the task is not preemptible", Meaning: "The node is a spot instance and the task is not preemptible. The subject is the label that marks spot instances."},
}

// arguments are what a profile may say about the plugin.
type arguments struct {
	// SpotLabelKey is the key of the label that marks spot instances.
	SpotLabelKey string `json:"spotLabelKey"`
	// SpotLabelValue is the value of that label on spot instances.
	SpotLabelValue string `json:"spotLabelValue"`
	// NonSpotScore is the score of all other nodes, from 0 to 100; spot instances have 0.
	NonSpotScore float64 `json:"nonSpotScore"`
}

type plugin struct{ arguments }

// New builds the plugin. What the arguments leave out has its default.
var New = engine.WithArguments(defaults, build)

func defaults() arguments {
	return arguments{
		SpotLabelKey:   "kai.scheduler/instance-type",
		SpotLabelValue: "spot",
		NonSpotScore:   100,
	}
}

func build(a arguments) (engine.Plugin, error) {
	if a.SpotLabelKey == "" || a.SpotLabelValue == "" {
		return nil, fmt.Errorf("spotLabelKey %q and spotLabelValue %q must not be empty, or nodes without the label would count as spot; leave them out to mark spot instances with kai.scheduler/instance-type=spot", a.SpotLabelKey, a.SpotLabelValue)
	}
	if !(a.NonSpotScore >= 0 && a.NonSpotScore <= 100) {
		return nil, fmt.Errorf("nonSpotScore %v is not between 0 and 100, as every score must be; to make it count for more, raise the plugin's weight", a.NonSpotScore)
	}
	return &plugin{a}, nil
}

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticFilter(unstoppable, p.admit)
	s.Hooks.AddStaticScore(nil, p.score)
}

// unstoppable says which tasks the filter is for: all others pass unasked.
func unstoppable(s *cluster.Shape) bool { return !s.Preemptible }

// admit keeps them off spot instances.
func (p *plugin) admit(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if !p.isSpot(n) {
		return nil
	}
	return &engine.Rejection{
		Reason:  SpotNotAllowed,
		Cure:    engine.Grow | engine.Relax, // regular nodes would help, or a preemptible task
		Subject: p.SpotLabelKey + "=" + p.SpotLabelValue,
	}
}

// score prefers regular instances, for everybody.
func (p *plugin) score(_ *cluster.Shape, n *cluster.Node) float64 {
	if p.isSpot(n) {
		return 0
	}
	return p.NonSpotScore
}

func (p *plugin) isSpot(n *cluster.Node) bool { return n.Labels[p.SpotLabelKey] == p.SpotLabelValue }
