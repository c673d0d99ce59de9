// Package reclaim makes room for a job by taking back from other queues what
// they use beyond their fair share.
//
// Who is beyond his share is for the hooks to say that a profile has
// (AddReclaimableFn): without any, nobody goes.
package reclaim

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "Reclaim"

// Reclaimed is why a task was evicted.
const Reclaimed engine.Reason = "Reclaimed"

// Reasons documents what the plugin gives as reasons.
var Reasons = []engine.ReasonDoc{
	{Reason: Reclaimed, Meaning: "Of an eviction: the task's queue was above its fair share, and a queue that stays within its own takes its part back."},
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
	s.AddAdapter(p.adapt)
}

func (p *plugin) OnSessionClose(*engine.Session) {}

func (p *plugin) adapt(stmt *engine.Statement, job *cluster.Job, r *engine.Refusal) *engine.Refusal {
	return p.session.MakeRoom(stmt, job, r, engine.Reclaim, Reclaimed)
}
