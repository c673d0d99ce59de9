// Package firstcome puts a queue's older jobs first.
//
// It refuses to know anything but when a job came, and leaves jobs of the same
// age to the comparisons after it; the engine goes by name in the end.
package firstcome

import (
	"cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "FirstCome"

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddJobOrder(compare) }

func compare(l, r *cluster.Job) int {
	return cmp.Compare(l.Created, r.Created)
}
