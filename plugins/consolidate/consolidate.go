// Package consolidate makes room for a job by moving tasks of other jobs, when enough room
// is free in total, or is freed by evictions, but on different nodes.
//
// As few tasks as possible are moved, only tasks of preemptible jobs, and only if room can
// be reserved for each of them on another node. The plugin evicts no task without such a
// reservation.
package consolidate

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "Consolidate"

// Consolidated is the reason of an eviction of a task that is moved.
const Consolidated engine.Reason = "Consolidated"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: Consolidated, Phrase: "moved, to free room in one place", Meaning: "Of an eviction: the task is moved to another node, where room is reserved for it, so that free room is in one place."},
}

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// SharedByProfiles marks the plugin as one that decides about the jobs of all profiles.
func (*plugin) SharedByProfiles() {}

func (p *plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddMovable(movable)
	s.Hooks.AddEvictionPurpose(engine.Move, Consolidated)
}

// movable allows every victim to be moved. The engine asks about preemptible jobs only.
func movable(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
	return func(*engine.Victim) engine.Verdict { return engine.Allow }
}
