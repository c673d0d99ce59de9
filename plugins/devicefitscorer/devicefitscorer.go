// Package devicefitscorer prefers small devices for models that claim a fraction of each
// device, or whole devices. The score is
//
//	10 × needed ÷ claimed
//
// A server that claims 90 % of any device looks equally well packed on all of them.
// This score tells a small device from a large one. Its maximum is 10: more than the
// score for files that are already on the node, and less than the score of PlacementScorer.
// It does not apply to requests in bytes, and does not consider what devices cost.
package devicefitscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "DeviceFitScorer"

const most = 10

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string { return Name }

// OnSessionOpen registers a score for nodes and one for devices, so that the devices that
// are chosen on a node are those that its score was computed for.
func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddShapeScore(matters, score)
	engine.EqualNodes(s.Hooks)
	s.Hooks.AddDeviceScore(func(s *cluster.Shape, n *cluster.Node, d *cluster.Device) float64 {
		if !matters(s) {
			return 0
		}
		return fit(s, n, d)
	})
	engine.EqualNodes(s.Hooks)
}

func matters(s *cluster.Shape) bool {
	return s.ServesModel() && s.Need.Memory == 0 && s.Need.SumAtLeast > 0
}

// score returns the fit of the tightest device of the node that can take the task.
func score(s *cluster.Shape, n *cluster.Node) float64 {
	best := 0.0
	for i := range n.Devices {
		d := &n.Devices[i]
		if f := fit(s, n, d); f > best && s.Takes(d) {
			best = f
		}
	}
	return best
}

// fit returns 0 if the device alone is too small for its part of the model: other devices
// may provide more than their part. A task that takes the whole node uses all its devices.
func fit(s *cluster.Shape, n *cluster.Node, d *cluster.Device) float64 {
	need := &s.Need
	devices := need.Devices
	if need.WholeNode {
		devices = len(n.Devices)
	}
	each := need.SumOn(d.Product) / cluster.Bytes(max(1, devices))
	claimed := min(d.Of(need.Milli()), d.Room())
	if claimed <= 0 || each > claimed {
		return 0
	}
	return most * float64(each) / float64(claimed)
}
