package enginetest

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// AllowAllVictims returns a plugin that allows every victim to be reclaimed, preempted and
// moved, so that a test sees only what other plugins protect. It evicts nothing itself: the
// profile also needs Reclaim, Preempt or Consolidate.
func AllowAllVictims() engine.Plugin { return allowAllVictims{} }

type allowAllVictims struct{ engine.FixedHooks }

func (allowAllVictims) Name() string { return "AllowAllVictims" }

func (allowAllVictims) OnSessionOpen(s *engine.Session) {
	yes := func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
		return func(*engine.Victim) engine.Verdict { return engine.Allow }
	}
	s.Hooks.AddReclaimable(yes)
	s.Hooks.AddPreemptable(yes)
	s.Hooks.AddMovable(yes)
}
