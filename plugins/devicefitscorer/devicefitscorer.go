// Package devicefitscorer keeps models that claim a part of each device, however
// large, off devices that are larger than they need:
//
//	10 × needed ÷ claimed
//
// A server that takes 90 % of whatever device it gets looks equally well packed
// on every one of them; this is what tells a small device from a large one. The
// most is 10: more than a download is worth, and less than how replicas are laid
// out. It says nothing of needs in bytes, and refuses to know what devices cost.
package devicefitscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "DeviceFitScorer"

const most = 10

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string { return Name }

// OnSessionOpen registers both: which devices of a node are taken must agree with
// what the node is worth.
func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddShapeScore(matters, score)
	s.Hooks.AddDeviceScore(func(s *cluster.Shape, _ *cluster.Node, d *cluster.Device) float64 {
		if !matters(s) {
			return 0
		}
		return fit(s, d)
	})
}

func matters(s *cluster.Shape) bool {
	return s.Served() && s.Need.Share > 0 && s.Need.SumAtLeast > 0
}

// score is that of the tightest device which can take its part.
func score(s *cluster.Shape, n *cluster.Node) float64 {
	best := 0.0
	for i := range n.Devices {
		d := &n.Devices[i]
		if f := fit(s, d); f > best && s.Takes(d) {
			best = f
		}
	}
	return best
}

// fit is 0 where the device alone is too small for its part: others may make up for it.
func fit(s *cluster.Shape, d *cluster.Device) float64 {
	need := &s.Need
	each := need.SumAtLeast / cluster.Bytes(max(1, need.Devices))
	claimed := d.Of(need.Share)
	if claimed <= 0 || each > claimed {
		return 0
	}
	return most * float64(each) / float64(claimed)
}
