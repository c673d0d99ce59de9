// Package wiringscorer prefers nodes on which a task gets devices that are connected well, and on
// which it does not break an island: devices that are connected with each other, and are all idle.
// So it keeps whole islands for tasks of several devices.
//
// The score of a node is the sum of two parts. The first is how the devices are connected that the
// task would get there: 4 for one NVLink domain, 3 for one PCIe root, 2 for one NUMA node, and 0 if
// they are not connected or nothing is known. The second is 2, or 0 if the task would break an
// island. A task of one device has only the second part.
//
// So the score is at most 6. With weight 1, it decides among nodes that are packed nearly as well.
// With weight 5, nearly all tasks get devices of one island. docs/wiring.md has figures.
//
// Which devices of a node the task gets is decided without this plugin, in the same way on every
// node. A node of which nothing is known, or on which all devices are connected in the same way,
// counts as one island. If no node has several islands of NVLink or PCIe, the plugin gives no score:
// NUMA nodes alone are worth less than the time that the scores take. It does not apply to tasks whose devices are MIG slices, divided by layers, or all devices of a node. It does not look
// at how nodes are connected with each other.
package wiringscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "WiringScorer"

// connected is the first part of the score, by the connection, and unbroken the second.
var connected = [...]float64{cluster.ByNUMA: 2, cluster.ByPCIe: 3, cluster.ByLink: 4}

const unbroken = 2

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin {
	p := &plugin{}
	p.scoreNode = p.score // once, because a session would allocate it
	return p
})

type plugin struct {
	session   *engine.Session
	scoreNode engine.ShapeScore
	scores    bool // whether the score is registered
}

func (*plugin) Name() string { return Name }

// OnSessionOpen registers a score, if NVLink or PCIe connects some devices of a node and not others.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	if p.scores = cluster.LinkedNodes(s.View) > 0; p.scores {
		s.Hooks.AddShapeScore(matters, p.scoreNode)
		engine.EqualNodes(s.Hooks)
	}
	p.Reopen(s)
}

// Reopen returns false if the first such node was added or the last one removed.
func (p *plugin) Reopen(s *engine.Session) bool {
	p.session = s
	return p.scores == (cluster.LinkedNodes(s.View) > 0)
}

func matters(s *cluster.Shape) bool {
	n := &s.Need
	return n.Devices > 0 && n.Partition == "" && n.Layers == nil && !n.WholeNode
}

func (p *plugin) score(s *cluster.Shape, n *cluster.Node) float64 {
	claims, ok := p.session.Devices(s, n)
	if !ok {
		return 0
	}
	points := 0.0
	if by, ok := cluster.ConnectionOf(n, claims); ok {
		points = connected[by]
	}
	if !cluster.BreaksIsland(n, claims) {
		points += unbroken
	}
	return points
}
