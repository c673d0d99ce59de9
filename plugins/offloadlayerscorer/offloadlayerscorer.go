// Package offloadlayerscorer keeps the replicas with most layers on devices when
// a model gets fewer of them:
//
//	100 × layers on devices ÷ all layers
//
// as the replica reports it, or else as its tasks were laid out. A replica
// without layers to speak of gets 0. It refuses to know how fast either is.
package offloadlayerscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "OffloadLayerScorer"

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddInstanceScore(keep) }

func keep(j *cluster.Job) float64 {
	o := j.Offload
	if o.Total <= 0 {
		o = booked(j)
	}
	if o.Total <= 0 {
		return 0
	}
	// What is reported may be anything.
	return 100 * float64(min(max(0, o.Layers), o.Total)) / float64(o.Total)
}

// booked is what the books say: claims of all tasks, where they were laid out in layers.
func booked(j *cluster.Job) cluster.Offload {
	var o cluster.Offload
	for _, t := range j.Tasks() {
		l := t.Shape.Need.Layers
		if l == nil {
			continue
		}
		o.Total += l.Total
		for _, c := range t.Claims {
			o.Layers += c.Layers
		}
	}
	return o
}
