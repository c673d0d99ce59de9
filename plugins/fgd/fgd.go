// Package fgd places a task where it increases fragmentation least, as in "Beware of Fragmentation:
// Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent" (USENIX ATC'23). The
// fragmentation F of a node is the expected amount of its free devices that a task of the workload
// cannot use. Over the nodes, and over the devices of a node for a part of a device, the score is
//
//	⌊100 × sigmoid(F before − F after)⌋, F in devices
//
// The workload is the requests that 95 % of the tasks make. The argument gives them; without it,
// they are learnt from the tasks that have arrived (View.Demand). Until eight tasks have arrived,
// all nodes are equal. A request of device memory counts as one of whole devices.
//
// Many nodes have equal scores, and the first by name is taken. It does not look at memory, and does
// not apply to models.
package fgd

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/fragmentation"
)

// Name is the plugin's name in a profile.
const Name = "FGD"

// Arguments are the plugin's arguments.
type Arguments struct {
	// Workload lists requests and how frequent they are. Unless given, it is learnt.
	Workload []Request `json:"workload"`
}

// Request is a request of the workload.
type Request struct {
	Count    int64    `json:"count"`    // How many tasks make the request. It is required.
	CPU      int64    `json:"cpu"`      // In thousandths of a core.
	Devices  int      `json:"devices"`  // How many devices; 0 for tasks without devices.
	Milli    int64    `json:"milli"`    // The share of each device in thousandths; 0 means 1000.
	Products []string `json:"products"` // The allowed products; empty: any.
}

// New builds the plugin from its Arguments.
var New = engine.WithArguments(nil, build)

type plugin struct {
	given    bool // the workload is an argument
	workload fragmentation.Workload
	number   uint64             // a hash of the workload, if it is learnt
	learnt   *cluster.Requested // the first of the requests that it was learnt from
	before   fragmentation.Node // the node that is scored
	after    fragmentation.Node // a copy of it with the task
}

func build(a Arguments) (engine.Plugin, error) {
	p := &plugin{given: len(a.Workload) > 0}
	counts := make([]fragmentation.Demand, len(a.Workload))
	for i, r := range a.Workload {
		if r.Count < 1 || r.CPU < 0 || r.Devices < 0 || r.Milli < 0 || r.Milli > int64(cluster.Whole) {
			return nil, fmt.Errorf("workload[%d]: want a count of at least 1, cpu and devices of at least 0, and milli from 0 to 1000", i)
		}
		milli := cluster.Milli(r.Milli)
		if milli == 0 {
			milli = cluster.Whole
		}
		counts[i] = fragmentation.Demand{Share: r.Count, CPU: r.CPU, Devices: r.Devices, Milli: milli, Products: r.Products}
	}
	p.workload = fragmentation.Popular(counts)
	return p, nil
}

func (*plugin) Name() string { return Name }

// OnSessionOpen registers a score for nodes and one for devices.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	s.Hooks.AddShapeScore(matters, p.score)
	engine.EqualNodes(s.Hooks)
	s.Hooks.AddDeviceScore(p.deviceScore)
	engine.EqualNodes(s.Hooks)
}

// Reopen prepares the plugin for the session.
func (p *plugin) Reopen(s *engine.Session) bool {
	if !p.given {
		p.learn(s.View.Demand())
		s.Hooks.Publish(Name, p.number)
	}
	return true
}

// learn makes a workload of the requests that have arrived.
func (p *plugin) learn(d *cluster.Demand) {
	var first *cluster.Requested
	if len(d.Learnt) > 0 {
		first = &d.Learnt[0]
	}
	if first == p.learnt {
		return // State makes another list when it has learnt more
	}
	p.learnt = first
	p.workload = fragmentation.Popular(fragmentation.Counts(d.Learnt))
	h := fnv.New64a()
	fmt.Fprint(h, p.workload)
	p.number = h.Sum64()
}

// matters excludes models, which PlacementScorer scores.
func matters(s *cluster.Shape) bool { return !s.ServesModel() }

// score returns the score of the node with the best choice of devices.
func (p *plugin) score(s *cluster.Shape, n *cluster.Node) float64 {
	p.before.Read(n)
	before := p.workload.Of(&p.before)
	if s.Need.Devices == 1 && s.Need.Share > 0 {
		best := 0
		for i := range n.Devices {
			if s.Takes(&n.Devices[i]) && !p.hasTwin(i) {
				best = max(best, p.gain(s, n, before, i))
			}
		}
		return float64(best)
	}
	return float64(p.gain(s, n, before, -1))
}

// hasTwin reports whether a device before the one with the index is equal to it.
func (p *plugin) hasTwin(i int) bool {
	return slices.Contains(p.before.Devices[:i], p.before.Devices[i])
}

// deviceScore returns the score of a device for a part of it.
func (p *plugin) deviceScore(s *cluster.Shape, n *cluster.Node, d *cluster.Device) float64 {
	if !matters(s) || s.Need.Devices != 1 || s.Need.Share == 0 || !s.Takes(d) {
		return 0
	}
	p.before.Read(n)
	return float64(p.gain(s, n, p.workload.Of(&p.before), int(d.Index)))
}

// gain returns the score of the node if a task of the shape takes the device. With the device -1, it
// takes the first devices that have room.
func (p *plugin) gain(s *cluster.Shape, n *cluster.Node, before int64, device int) int {
	p.after.CPU = p.before.CPU - s.Resources.Of(cluster.CPU)
	p.after.Devices = append(p.after.Devices[:0], p.before.Devices...)
	if device >= 0 {
		p.after.Devices[device].Free -= s.Price(&n.Devices[device])
	} else if !s.Need.None() {
		left := s.Wanted(len(n.Devices))
		for i := 0; i < len(n.Devices) && left > 0; i++ {
			if d := &n.Devices[i]; s.Takes(d) {
				p.after.Devices[i].Free -= s.Price(d)
				left--
			}
		}
	}
	return sigmoid(before - p.workload.Of(&p.after))
}

// steps[k] is the least difference of F with the score k+1, in the unit of Workload.Of.
var steps = func() (out [99]int64) {
	for k := range out {
		p := float64(k+1) / 100
		out[k] = int64(math.Ceil(1000 * fragmentation.Unit * math.Log(p/(1-p))))
	}
	return out
}()

// sigmoid returns ⌊100 ÷ (1 + e^−x)⌋ for x devices, in the unit of Workload.Of.
func sigmoid(x int64) int {
	n, exact := slices.BinarySearch(steps[:], x)
	if exact {
		n++
	}
	return n
}
