// Package statusscorer keeps healthy replicas when the number of replicas of a model is
// reduced. A replica that runs on nodes that are all ready gets 100. A replica gets 0 if it
// failed, if it is not placed, or if one of its nodes is not ready, because the last state that
// was reported from there may be out of date. Any other replica gets 50.
//
// A replica without reported health counts as running if all its tasks are bound.
package statusscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "StatusScorer"

// The scores of replicas.
const (
	healthy = 100
	between = 50
	failed  = 0
)

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddInstanceScore(keep) }

func keep(j *cluster.Job) float64 {
	bound, ready := true, true
	for _, t := range j.Tasks() {
		bound = bound && t.Runs()
		if t.Placed() {
			ready = ready && t.At().Ready()
		}
	}
	switch {
	case j.Health == cluster.HealthFailed || j.Placed() == 0 || !ready:
		return failed
	case j.Health == cluster.HealthRunning || j.Health == "" && bound:
		return healthy
	}
	return between
}
