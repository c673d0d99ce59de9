// Package firstcome orders the jobs of a queue by age: older jobs are tried first.
//
// It compares when jobs were created and nothing else. Jobs of the same age are left to
// the comparisons of later plugins; the engine finally compares their names.
package firstcome

import (
	"cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "FirstCome"

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

// SharedByProfiles marks the plugin as one that decides about the jobs of all profiles.
func (plugin) SharedByProfiles() {}

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddJobOrder(compare) }

func compare(l, r *cluster.Job) int {
	return cmp.Compare(l.Created, r.Created)
}
