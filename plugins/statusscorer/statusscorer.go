// Package statusscorer keeps healthy replicas when a model gets fewer of them:
// 100 for one that runs on nodes that are all ready, 0 for one that failed or is
// nowhere, 50 for those in between.
//
// Where nobody said how a replica is, it is taken to run if all its tasks are
// bound. It refuses to know what health means to those who report it.
package statusscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "StatusScorer"

// The scores.
const (
	healthy = 100
	between = 50
	ill     = 0
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
		return ill
	case ready && (j.Health == cluster.HealthRunning || j.Health == "" && bound):
		return healthy
	}
	return between
}
