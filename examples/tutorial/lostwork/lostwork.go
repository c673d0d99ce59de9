// Package lostwork makes the eviction of a task cost as many points as the task has run
// for minutes, because an eviction loses the work since the start.
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
