// Package reclaim makes room for a job by evicting tasks of queues that hold more than
// their fair share.
//
// Which queues those are is decided by the hooks of other plugins (AddReclaimable), such
// as FairShare. Without such a plugin nothing is evicted.
package reclaim

import (
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "Reclaim"

// Reclaimed is the reason of an eviction for another queue's fair share.
const Reclaimed engine.Reason = "Reclaimed"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: Reclaimed, Phrase: "its queue was above its fair share", Meaning: "Of an eviction: the queue of the task was above its fair share, and the room is needed by a queue that stays within its own."},
}

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// SharedByProfiles marks the plugin as one that decides about the jobs of all profiles.
func (*plugin) SharedByProfiles() {}

func (p *plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddEvictionPurpose(engine.Reclaim, Reclaimed)
}
