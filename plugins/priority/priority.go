// Package priority orders the jobs of a queue by priority: jobs of higher priority are
// tried first.
//
// It does not decide about running jobs; Preempt does. If two jobs have equal priority, a
// job that lacks its minimum is tried before one that has it. If that is equal too, the
// comparisons of later plugins decide.
package priority

import (
	"cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "Priority"

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

// SharedByProfiles marks the plugin as one that decides about the jobs of all profiles.
func (plugin) SharedByProfiles() {}

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddJobPriority(compare) }

func compare(l, r *cluster.Job) int { return cmp.Compare(r.Priority, l.Priority) }
