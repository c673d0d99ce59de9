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
// Spread avoids company. With m other replicas of the model on the node and o
// replicas of other models, the node is worth
//
//	100 ÷ (2 + m) + (100 ÷ (1 + m) − 100 ÷ (2 + m)) ÷ (1 + o)
//
// so that fewer of this model always count before fewer of others. A device with
// k leases is worth 100 ÷ (1 + k), the mean over those the replica would get
// counts, and 100 where it gets none. The score is 85 % node and 15 % device.
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
func New(args engine.Arguments) (engine.Plugin, error) {
	if err := args.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	return plugin{}, nil
}

func (plugin) Name() string                   { return Name }
func (plugin) OnSessionClose(*engine.Session) {}

// OnSessionOpen registers Spread in two halves: what depends on the devices is
// remembered, and only the company that a replica would have is counted each time.
func (plugin) OnSessionOpen(s *engine.Session) {
	s.AddShapeOrderFn((*cluster.Shape).Served, place)
	s.AddNodeOrderFn(spreads, company)
	s.AddGpuOrderFn(order)
	s.AddInstanceOrderFn(keep)
}

func spreads(t *cluster.Task, _ *cluster.Job) bool { return t.Shape.Strategy == cluster.Spread }

// place is all of Binpack, and of Spread what concerns devices.
func place(s *cluster.Shape, n *cluster.Node) float64 {
	claims, ok := n.Choose(s, func(d *cluster.Device) int64 { return points(s, d) })
	if !ok {
		return 0 // whoever filters sees to it
	}
	t := cluster.Task{Shape: s, Node: n, Claims: claims}
	return 100 * layered(&t, devicePart(&t))
}

// company is what of Spread concerns others on the node.
func company(t *cluster.Task, j *cluster.Job, n *cluster.Node) float64 {
	return 100 * beside(t.Shape, nodePart(j, n))
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
		sum += layered(t, devicePart(t))
		if t.Shape.Strategy == cluster.Spread {
			sum += beside(t.Shape, nodePart(j, t.Node))
		}
	}
	if tasks == 0 {
		return 0
	}
	return min(100, 100*sum/float64(tasks))
}

// devicePart is what can be said from 0 to 1 without looking at others. Conversions
// keep machines that would fuse a product and a sum from rounding differently.
func devicePart(t *cluster.Task) float64 {
	if t.Shape.Strategy == cluster.Spread {
		return float64(0.15 * solitude(t))
	}
	return utilisation(t)
}

// nodePart is Spread's other part.
func nodePart(j *cluster.Job, n *cluster.Node) float64 {
	return float64(0.85 * seclusion(crowd(j, n)))
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

// beside is what is left for a part that layers come before.
func beside(s *cluster.Shape, part float64) float64 {
	if !spills(s) {
		return part
	}
	return part / float64(s.Need.Layers.Total+1)
}

func spills(s *cluster.Shape) bool { return s.Need.Layers != nil && s.Need.Layers.Spill }

// booked reports whether what the task takes is part of what its node has in use.
func booked(t *cluster.Task) bool { return t.Status == cluster.Bound || t.Status == cluster.Nominated }
