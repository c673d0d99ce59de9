// Package consolidate makes room for a job by moving tasks of other jobs: enough is
// free, or is freed by evictions, but in pieces.
//
// As few tasks as possible move, and none unless all that move have room on other
// nodes. It refuses to know whose turn it is: no job loses its place.
package consolidate

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "Consolidate"

// Consolidated is why a task was moved.
const Consolidated engine.Reason = "Consolidated"

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: Consolidated, Phrase: "moved, so that what it leaves is in one piece", Meaning: "Of an eviction: the task moves to another node, where room is held for it, so that what it leaves is in one piece."},
}

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddMovable(movable)
	s.Hooks.AddMeans(engine.Move, Consolidated)
}

// movable lets every preemptible job move: the engine asks about no others.
func movable(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
	return func(*engine.Victim) engine.Verdict { return engine.Allow }
}
