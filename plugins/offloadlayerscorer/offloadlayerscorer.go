// Package offloadlayerscorer keeps the replicas with the most layers on devices when the
// number of replicas of a model is reduced:
//
//	100 × layers on devices ÷ all layers
//
// The numbers are those that the replica reports, or otherwise those of its placement. A
// replica that is not placed in layers gets 0. The plugin does not consider speed.
package offloadlayerscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "OffloadLayerScorer"

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddInstanceScore(keep) }

func keep(j *cluster.Job) float64 {
	o := j.Offload
	if o.Total <= 0 {
		o = placedLayers(j)
	}
	if o.Total <= 0 {
		return 0
	}
	// Reported numbers may be out of range.
	return 100 * float64(min(max(0, o.Layers), o.Total)) / float64(o.Total)
}

// placedLayers returns the layers that State records in the claims of the job's tasks.
func placedLayers(j *cluster.Job) cluster.Offload {
	var o cluster.Offload
	for _, t := range j.Tasks() {
		l := t.Shape.Need.Layers
		if l == nil {
			continue
		}
		o.Total += l.Total + l.Outside
		for _, c := range t.Claims {
			o.Layers += c.Layers
		}
	}
	return o
}
