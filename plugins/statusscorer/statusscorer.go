// Package statusscorer keeps healthy replicas when the number of replicas of a model is
// reduced. A replica that runs on nodes that are all ready gets 100, a replica that failed
// or is not placed gets 0, and any other replica gets 50.
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

type plugin struct{}

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
	case j.Health == cluster.HealthFailed || j.Placed() == 0:
		return failed
	case ready && (j.Health == cluster.HealthRunning || j.Health == "" && bound):
		return healthy
	}
	return between
}
