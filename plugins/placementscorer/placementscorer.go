// Package placementscorer lays the replicas of models out over nodes and
// devices, by the strategy that each model asks for. It says nothing about
// anything else.
//
// Binpack fills what is in use already. Of each device that the replica would
// get, and of the node's own memory, it looks at the part that the replica takes
// of what is free before it comes:
//
//	100 × (ram + 2 × device memory) ÷ 3
//
// of the device where that is most; 100 × ram where it takes no device. A part is
// 0 where nothing is asked for, and 1 where nothing is left. On unified memory
// both are parts of one pot.
//
// Spread avoids company. With m other replicas of the model on the node, whatever
// else is true of it, it is worth more than 100 ÷ (2 + m) and at most 100 ÷ (1 + m):
// fewer of this model always come first. What is between, the step of m, is given
// out by o, the replicas of other models there, and by the devices:
//
//	100 ÷ (2 + m) + step × (0.85 ÷ (1 + o) + 0.15 × device)
//
// A device with k leases is worth 1 ÷ (1 + k), the mean over those the replica would
// get counts, and 1 where it gets none. So 85 % are the node, and 15 % the device.
// Tasks of a replica that are there already are company to those that come.
//
// Where layers may spill to the node's memory, how many of them devices hold
// comes first, whatever the strategy: with s the score from above, l layers of t
// on devices make 100 × (l + s ÷ 100) ÷ (t + 1).
//
// Among the devices of a node Binpack takes those of which the replica takes the
// largest part, Spread those with the fewest leases and then the largest part free.
//
// When a model gets fewer replicas the score says how much each is worth keeping:
// what it would score if it came now to where it is, the mean over its tasks.
// It refuses to know whether a replica fits.
package placementscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "PlacementScorer"

type plugin struct{}

// New builds the plugin. It has no arguments: the strategy is the model's.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string { return Name }

// OnSessionOpen registers Spread with a bound: whose replicas are company is not
// known by the shape, and on nodes without any of the model it makes no difference.
func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddShapeScore(packs, func(shape *cluster.Shape, n *cluster.Node) float64 { return pack(s.Devices, shape, n) })
	s.Hooks.AddBoundedScore(spreads, func(shape *cluster.Shape, n *cluster.Node) float64 { return spread(s.Devices, shape, n, 0, guests(n)) },
		func(t *cluster.Task, j *cluster.Job, n *cluster.Node) float64 {
			same, others := company(j, n)
			return spread(s.Devices, t.Shape, n, same, others)
		})
	s.Hooks.AddDeviceScore(order)
	s.Hooks.AddInstanceScore(keep)
}

func packs(s *cluster.Shape) bool   { return s.Served() && s.Strategy != cluster.Spread }
func spreads(s *cluster.Shape) bool { return s.Strategy == cluster.Spread }

// choice says which devices of the node the shape would get.
type choice func(*cluster.Shape, *cluster.Node) ([]cluster.Claim, bool)

// pack is Binpack's score.
func pack(choose choice, s *cluster.Shape, n *cluster.Node) float64 {
	claims, ok := choose(s, n)
	if !ok {
		return 0 // whoever filters sees to it
	}
	t := cluster.Task{Shape: s, Node: n, Claims: claims}
	return 100 * layered(&t, utilisation(&t))
}

// spread is Spread's score, in such company.
func spread(choose choice, s *cluster.Shape, n *cluster.Node, same, others int) float64 {
	claims, ok := choose(s, n)
	if !ok {
		return 0
	}
	t := cluster.Task{Shape: s, Node: n, Claims: claims}
	return 100 * layered(&t, seclusion(same, others, solitude(&t)))
}

// keep is what the replica would score if it came now to where it is.
func keep(j *cluster.Job) float64 {
	sum, tasks := 0.0, 0
	for _, t := range j.Tasks() {
		if l := t.Landing(); l != nil {
			t = l
		}
		if !booked(t) || !t.Shape.Served() {
			continue
		}
		tasks++
		if spreads(t.Shape) {
			same, others := crowd(j, t.Node)
			sum += layered(t, seclusion(same, others, solitude(t)))
		} else {
			sum += layered(t, utilisation(t))
		}
	}
	if tasks == 0 {
		return 0
	}
	return min(100, 100*sum/float64(tasks))
}

// layered puts the layers that devices hold before all else, where not all must be there.
func layered(t *cluster.Task, part float64) float64 {
	if !spills(t.Shape) {
		return part
	}
	on := 0
	for i := range t.Claims {
		on += t.Claims[i].Layers
	}
	return (float64(on) + part) / float64(t.Shape.Need.Layers.Total+1)
}

func spills(s *cluster.Shape) bool { return s.Need.Layers != nil && s.Need.Layers.Spill }

// booked reports whether what the task takes is part of what its node has in use.
func booked(t *cluster.Task) bool { return t.Runs() || t.Status == cluster.Nominated }
