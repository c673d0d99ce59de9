// Package fillvalue places a task where it costs least of what the free room of the cluster is
// worth to the tasks that will arrive. It expects that these request what arriving tasks have
// requested so far (View.Demand).
//
//   - The fill value of a node is how much of its devices is held after it was filled with tasks:
//     the mean over sequences of requests, each of which takes what still fits. A request that
//     leaves parts of devices or cores over lowers the fill value by more than it takes. If tasks
//     end, a request counts less the later it comes, because room is lost when the task beside it
//     ends before a request fits.
//   - A slot is room for a request of several devices. Slots have prices: the fewer there are, and
//     the more of them are expected to be requested, the higher. The slots of an empty node also
//     count in part on a node with tasks: with the probability that all of them end. So a task is
//     placed beside many others rather than on a node that will soon be empty.
//   - Devices have prices for products that few tasks can do without.
//
// A placement costs the fill value that it takes beyond what the task itself holds, and the prices
// of the slots and products that it takes. Among equal nodes, it takes the one on which least is
// left. Until eight tasks have arrived, only that counts.
//
// Requests of a GPU by memory count by their share of the device. The plugin looks at cores, memory
// and devices, and not at other resources. It does not apply to models.
package fillvalue

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "FillValue"

// unit is one thousandth of a device, in the unit of fill values, prices and costs.
const unit = 1024

type plugin struct {
	view   cluster.View
	demand *cluster.Requested // the first of the requests that the workload was made of
	fleet  fleet
	work   workload
	prices prices
	given  []int64 // the parameters that the prices were taken from
	epoch  uint64  // grows when the workload or the prices change; values of rooms of earlier epochs are not valid
	hooks  hooks
}

// hooks are the functions that a session registers. They are made once, because each method value
// is allocated.
type hooks struct {
	use         func([]int64)
	learn       engine.Learner
	score       engine.ShapeScore
	deviceScore engine.DeviceScore
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin {
	p := &plugin{}
	p.hooks = hooks{p.use, p.learn, p.score, p.deviceScore}
	return p
})

func (*plugin) Name() string { return Name }

// OnSessionOpen registers a score for nodes, one for devices, and the function that learns prices.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	s.Hooks.AddLearner(notes, p.hooks.use, p.hooks.learn)
	s.Hooks.AddShapeScore(matters, p.hooks.score)
	engine.EqualNodes(s.Hooks)
	s.Hooks.AddDeviceScore(p.hooks.deviceScore)
	engine.EqualNodes(s.Hooks)
}

// Reopen prepares the plugin for the session.
func (p *plugin) Reopen(s *engine.Session) bool {
	p.open(s.View)
	return true
}

// open forgets what was learnt about another State or from other requests, or too many machines.
func (p *plugin) open(v cluster.View) {
	if p.view == v && !p.fleet.full() {
		p.takeDemand()
		return
	}
	*p = plugin{view: v, hooks: p.hooks, fleet: newFleet()}
	p.takeDemand()
	p.count() // here, so that no decision takes long because all nodes are counted for the first prices
}

// takeDemand makes the workload of the requests that State has learnt.
func (p *plugin) takeDemand() {
	d := p.view.Demand()
	var first *cluster.Requested
	if len(d.Learnt) > 0 {
		first = &d.Learnt[0]
	}
	same := p.demand == first && p.work.number > 0 // State makes another list when it has learnt more
	if n := len(p.fleet.rooms.young); n > max(maxRooms, 2*len(p.fleet.used)) || n > enoughRooms && !same {
		p.fleet.forgetUnused()
	}
	if same {
		return
	}
	p.demand = first
	outcomes := p.work.outcomes
	outcomes.empty()
	p.work = newWorkload(d.Learnt, p.work.number+1)
	p.work.outcomes = outcomes
	p.work.learnKinds(p.fleet.kinds)
	p.prices, p.given = prices{}, nil
	p.epoch++
}

// matters excludes models, which PlacementScorer scores.
func matters(s *cluster.Shape) bool { return !s.ServesModel() }

// score returns the score of the node with the best choice of devices.
func (p *plugin) score(s *cluster.Shape, n *cluster.Node) float64 {
	before := p.room(n)
	least := int64(noPlace)
	for _, after := range p.fleet.after(before, s, n) {
		least = min(least, p.cost(s, n, before, after))
	}
	return points(least)
}

// deviceScore returns the score of a device for a part of it. Other devices are equal.
func (p *plugin) deviceScore(s *cluster.Shape, n *cluster.Node, d *cluster.Device) float64 {
	if !matters(s) || s.Need.Devices != 1 || !s.Takes(d) {
		return 0
	}
	before := p.room(n)
	after := p.fleet.with(before, s, n, int(d.Index))
	// Of devices that cost the same, the fullest one is taken, and a device that another task
	// releases is the last of those that are equally full, because the task would have to wait.
	cost := p.loss(s, before, after) + int64(freeOf(d))*unit*tieBreak/1000
	if d.Use.ReleasingLeases > 0 {
		cost += unit / 100
	}
	return points(cost)
}

// room returns what is free of the node.
func (p *plugin) room(n *cluster.Node) *room {
	r := p.fleet.room(n)
	p.work.learnKinds(p.fleet.kinds)
	return r
}

// noPlace is a cost above that of any placement.
const noPlace = 1 << 45

// tieBreak is what all cores and devices of a machine, or all of a device, are worth if nothing else
// decides, in thousandths of a device.
const tieBreak = 5

// cost returns what it costs that the room of the node becomes another one because a task of the shape
// is placed. The cores of the task are not subtracted from what is left, because all nodes lose the same.
func (p *plugin) cost(s *cluster.Shape, n *cluster.Node, before, after *room) int64 {
	left := p.fleet.nodes[n.Slot()].left - (before.milli-after.milli)/8*unit
	if len(p.work.requests) == 0 {
		return p.loss(s, before, after) + left
	}
	return p.loss(s, before, after) + left*tieBreak/1000
}

// loss returns how much less the room is worth to arriving tasks, beyond what the task holds.
func (p *plugin) loss(s *cluster.Shape, before, after *room) int64 {
	var loss int64
	if len(p.work.requests) > 0 {
		loss = (p.value(before) - p.value(after)) / unit
	}
	if closes(s) {
		loss += (before.milli - after.milli) * unit // the task holds little of a device that others cannot have, and nothing if they could not before
	}
	return loss
}

// closes reports whether other tasks cannot have what a task of the shape leaves of a device.
func closes(s *cluster.Shape) bool {
	return s.Isolation.Exclusive() || s.Isolation.GPU == cluster.GPUSessionExclusive
}

// value returns what the room is worth, multiplied by unit: its fill value and the prices of its
// slots and products, without what is free of its devices.
func (p *plugin) value(r *room) int64 {
	if r.valuedAt != p.epoch {
		r.valuedAt = p.epoch
		r.value = (p.work.fillWith(r, p.prices.release)-r.milli*unit)*unit + p.prices.of(&p.work, p.fleet.kinds, r)
	}
	return r.value
}

// points returns the score of a cost: 50 for none, and less the more it is. Small differences
// between small costs count more than those between large ones.
func points(cost int64) float64 {
	const half = 100 * unit // the cost with the score 25
	cost = min(max(cost, -noPlace), noPlace)
	size := max(cost, -cost)
	return float64(50_000-50_000*cost/(size+half)) / 1000
}
