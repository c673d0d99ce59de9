// Package lostwork adds a cost to the eviction of a task: one point for each minute that the
// task has run, because an eviction loses the work since the start.
package lostwork

import (
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "LostWork"

// New builds the plugin.
var New = engine.Policy(Name, func(s *engine.Session) {
	s.Hooks.AddVictimCost(func(t *cluster.Task) int64 {
		minutes := (s.Now - t.Started) / int64(time.Minute)
		return min(max(minutes, 0), engine.MaxVictimCost)
	})
})
