// Package bestfit prefers the node on which a task leaves the least. What is left of cores and of
// devices is measured in machines of 128 cores and 8 devices:
//
//	left = free cores ÷ 128 + free devices ÷ 8, both after the task is placed
//	score = 100 ÷ (1 + left)
//
// Among the devices of a node, it takes the fullest that has room.
//
// It does not look at memory, and does not know which requests will follow; FillValue does. It does
// not apply to models.
package bestfit

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "BestFit"

// The machine in which leftovers are measured.
const (
	machineCPU   = 128_000 // in thousandths of a core
	machineMilli = 8_000   // in thousandths of a device
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

func score(s *cluster.Shape, n *cluster.Node) float64 { return 100 / (1 + left(s, n)) }

// left returns what is left of the node after a task of the shape, in machines.
func left(s *cluster.Shape, n *cluster.Node) float64 {
	cpu := -s.Resources.Of(cluster.CPU)
	if l := n.Ledger(cluster.CPU); l != nil {
		cpu += l.Free()
	}
	milli := n.DeviceCapacity() - n.DeviceUsed() - taken(s, n)
	return float64(max(0, cpu))/machineCPU + float64(max(0, milli))/machineMilli
}

// taken returns how much a task of the shape takes of the devices of the node, in thousandths of a
// device.
func taken(s *cluster.Shape, n *cluster.Node) int64 {
	if s.Need.None() {
		return 0
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; s.Usable(d) {
			return int64(s.Wanted(len(n.Devices))) * int64(s.Price(d))
		}
	}
	return 0
}

// deviceScore is higher the more of the device is held.
func deviceScore(s *cluster.Shape, _ *cluster.Node, d *cluster.Device) float64 {
	if s.ServesModel() {
		return 0
	}
	return float64(min(max(0, d.Use.Milli), cluster.Whole)) / 10
}
