// Package wiringscorer prefers nodes on which a task gets devices that are connected well, and on
// which it does not break an island: devices that are connected with each other, and are all idle.
// So it keeps whole islands for tasks of several devices.
//
// The score of a node is the mean of two parts. The first is how the devices are connected that the
// task would get there: 100 for one NVLink domain, 70 for one PCIe root, 40 for one NUMA node, and 0
// if they are not connected or nothing is known. The second is 100, or 0 if the task would break an
// island. A task of one device has only the second part.
//
// Which devices of a node the task gets is decided without this plugin, in the same way on every
// node. A node of which nothing is known, or on which all devices are connected in the same way,
// counts as one island. If all nodes are like that, the plugin gives no score. It does not apply to
// tasks whose devices are MIG slices, divided by layers, or all devices of a node. It does not look
// at how nodes are connected with each other.
package wiringscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "WiringScorer"

// points are the scores of connections, by level.
var points = [...]float64{cluster.ByNUMA: 40, cluster.ByPCIe: 70, cluster.ByLink: 100}

// New builds the plugin. It has no arguments.
var New = engine.Policy(Name, func(s *engine.Session) {
	if s.View.Wired() == 0 {
		return
	}
	s.Hooks.AddShapeScore(matters, func(shape *cluster.Shape, n *cluster.Node) float64 {
		return score(s, shape, n)
	})
})

func matters(s *cluster.Shape) bool {
	n := &s.Need
	return n.Devices > 0 && n.Partition == "" && n.Layers == nil && !n.WholeNode
}

func score(s *engine.Session, shape *cluster.Shape, n *cluster.Node) float64 {
	claims, ok := s.Devices(shape, n)
	if !ok {
		return 0
	}
	keeps := 100.0
	if n.Breaks(claims) {
		keeps = 0
	}
	if len(claims) < 2 {
		return keeps
	}
	if level, ok := n.Connection(claims); ok {
		return (points[level] + keeps) / 2
	}
	return keeps / 2
}
