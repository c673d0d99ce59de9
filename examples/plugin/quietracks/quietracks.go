// Package quietracks keeps tasks off racks that are about to be maintained. Only
// preemptible tasks are placed there, and only if no other node is better.
package quietracks

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "QuietRacks"

// RackIsQuiet is given for a node in a quiet rack and a task that is not preemptible.
const RackIsQuiet engine.Reason = "RackIsQuiet"

type arguments struct {
	Label string   `json:"label"`
	Racks []string `json:"racks"`
}

type plugin struct{ arguments }

// New builds the plugin.
var New = engine.WithArguments(func() arguments { return arguments{Label: "rack"} }, build)

func build(a arguments) (engine.Plugin, error) {
	if len(a.Racks) == 0 {
		return nil, fmt.Errorf("racks is empty: list the racks to keep quiet, or leave the plugin out")
	}
	return &plugin{a}, nil
}

func (p *plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticFilter(
		func(shape *cluster.Shape) bool { return !shape.Preemptible },
		func(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
			if p.quiet(n) {
				return &engine.Rejection{Reason: RackIsQuiet, Cure: engine.Grow | engine.Relax, Subject: p.Label + "=" + n.Labels[p.Label]}
			}
			return nil
		})
	s.Hooks.AddStaticScore(nil, func(_ *cluster.Shape, n *cluster.Node) float64 {
		if p.quiet(n) {
			return 0
		}
		return 100
	})
}

func (p *plugin) quiet(n *cluster.Node) bool { return slices.Contains(p.Racks, n.Labels[p.Label]) }
