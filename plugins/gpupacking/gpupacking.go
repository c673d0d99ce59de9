// Package gpupacking fills devices that are partly held first, then idle devices of nodes on which
// something runs, then idle nodes:
//
//	score  67 to 100  a part of a device fits on a device that is partly held; more if less is left of it
//	       34 to 66   the node holds something; more if fewer of its devices are idle
//	       0 to 33    the node is idle; more if it has fewer devices
//
// Among the devices of a node, it takes the fullest that has room. A task without devices is placed
// on nodes that hold something first.
//
// It does not look at cores and memory, and does not know which requests will follow. It does not
// apply to models.
package gpupacking

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "GPUPacking"

// The lowest score of each kind of node, and how many points a kind has.
const (
	partlyHeld = 67
	busy       = 34
	points     = 32.0
)

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string { return Name }

// OnSessionOpen registers a score for nodes and one for devices.
func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddShapeScore(matters, score)
	engine.EqualNodes(s.Hooks)
	s.Hooks.AddDeviceScore(deviceScore)
	engine.EqualNodes(s.Hooks)
}

// matters excludes models, which PlacementScorer scores.
func matters(s *cluster.Shape) bool { return !s.ServesModel() }

func score(s *cluster.Shape, n *cluster.Node) float64 {
	idle, least := 0, cluster.Whole
	for i := range n.Devices {
		d := &n.Devices[i]
		switch {
		case d.Use.Leases == 0:
			idle++
		case s.Takes(d):
			least = min(least, d.FreeMilli()-s.Price(d))
		}
	}
	switch {
	case !s.Need.None() && least < cluster.Whole:
		return partlyHeld + points*(1-float64(max(0, least))/float64(cluster.Whole))
	case len(n.Tasks) > 0:
		return busy + points/float64(1+idle)
	}
	return points / float64(1+len(n.Devices))
}

// deviceScore is higher the more of the device is held.
func deviceScore(s *cluster.Shape, _ *cluster.Node, d *cluster.Device) float64 {
	if s.ServesModel() {
		return 0
	}
	return float64(min(max(0, d.Use.Milli), cluster.Whole)) / 10
}
