// Package priority puts a queue's jobs of higher priority first.
//
// It refuses to know what a priority may do to jobs that run already. Of jobs of
// equal priority those that lack their minimum come first, and the rest is left to the
// comparisons of other plugins.
package priority

import (
	"cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "Priority"

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddJobPriority(compare) }

func compare(l, r *cluster.Job) int { return cmp.Compare(r.Priority, l.Priority) }
