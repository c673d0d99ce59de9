// Package reclaim makes room for a job by taking back from other queues what
// they use beyond their fair share.
//
// Which queues are beyond their share is for the hooks of the profile to say
// (AddReclaimable): without any, nothing is evicted.
package reclaim

import (
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "Reclaim"

// Reclaimed is why a task was evicted.
const Reclaimed engine.Reason = "Reclaimed"

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: Reclaimed, Phrase: "its queue was above its fair share", Meaning: "Of an eviction: the task's queue was above its fair share, and a queue that stays within its own takes its part back."},
}

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

func (p *plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddMeans(engine.Reclaim, Reclaimed) }
