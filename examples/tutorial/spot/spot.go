// Package spot decides which jobs may run on spot instances: only preemptible jobs. These
// prefer regular nodes; the weight of the plugin decides how strongly.
package spot

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "spot-instance-manager"

// SpotNotAllowed is given for a spot instance if the job is not preemptible.
const SpotNotAllowed engine.Reason = "SpotNotAllowed"

type plugin struct {
	spotLabelKey   string
	spotLabelValue string
	nonSpotScore   float64
}

// New builds the plugin. It has no arguments yet, so any argument is an error.
var New = engine.WithoutArguments(func() engine.Plugin {
	return &plugin{
		spotLabelKey:   "kai.scheduler/instance-type",
		spotLabelValue: "spot",
		nonSpotScore:   100, // the maximum of a score; the plugin's weight decides how much it counts
	}
})

func (p *plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddTaskFilter(nil, func(_ *cluster.Task, job *cluster.Job, node *cluster.Node) *engine.Rejection {
		if job.Preemptible || !p.isSpot(node) {
			return nil
		}
		return &engine.Rejection{
			Reason:  SpotNotAllowed,
			Cure:    engine.Grow | engine.Relax, // regular nodes help, or making the job preemptible
			Subject: p.spotLabelKey + "=" + p.spotLabelValue,
		}
	})
	s.Hooks.AddTaskScore(nil, func(_ *cluster.Task, _ *cluster.Job, node *cluster.Node) float64 {
		if p.isSpot(node) {
			return 0
		}
		return p.nonSpotScore
	})
}

func (p *plugin) isSpot(n *cluster.Node) bool { return n.Labels[p.spotLabelKey] == p.spotLabelValue }
