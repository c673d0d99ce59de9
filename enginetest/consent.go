package enginetest

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Consent returns a plugin that allows every victim to be evicted, so that a test sees
// only what other plugins protect.
func Consent() engine.Plugin { return consent{} }

type consent struct{}

func (consent) Name() string { return "Consent" }

func (consent) OnSessionOpen(s *engine.Session) {
	yes := func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
		return func(*engine.Victim) engine.Verdict { return engine.Allow }
	}
	s.Hooks.AddReclaimable(yes)
	s.Hooks.AddPreemptable(yes)
	s.Hooks.AddMovable(yes)
}
