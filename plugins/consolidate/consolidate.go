// Package consolidate makes room for a job by moving others together: what is
// free is enough, but in pieces.
//
// It moves as few tasks as it can, and none unless all that move land again. It
// refuses to know whose turn it is: nobody loses his place.
package consolidate

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "Consolidate"

// Consolidated is why a task was moved.
const Consolidated engine.Reason = "Consolidated"

// Reasons documents what the plugin gives as reasons.
var Reasons = []engine.ReasonDoc{
	{Reason: Consolidated, Meaning: "Of an eviction: the task moves to another node, where room is held for it, so that what it leaves is in one piece."},
}

type plugin struct{ session *engine.Session }

// New builds the plugin. It has no arguments.
func New(args engine.Arguments) (engine.Plugin, error) {
	if err := args.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	return &plugin{}, nil
}

func (p *plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.session = s
	s.AddMovableFn(movable)
	s.AddAdapter(p.adapt)
}

func (p *plugin) OnSessionClose(*engine.Session) {}

// movable is everybody who is preemptible: the engine asks about no others.
func movable(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Reason {
	return func(*engine.Victim) engine.Reason { return engine.Consent }
}

// adapt looks at sums first: moving others frees nothing.
func (p *plugin) adapt(stmt *engine.Statement, job *cluster.Job, r *engine.Refusal) *engine.Refusal {
	if !p.session.FreeFor(job) {
		return r
	}
	return p.session.MakeRoom(stmt, job, r, engine.Move, Consolidated)
}
