// Package noderesourcesfitplus scores nodes by how full they would be with the task. Each
// resource has its own strategy and weight: devices may be packed while cores and memory
// are spread.
//
// The score is Σ weight·part ÷ Σ weight over the resources that the task
// requests and the configuration names, 100 if there is none. With used the amount
// that the node would have in use, this task included:
//
//	Pack    min(used, capacity) × 100 ÷ capacity
//	Spread  max(capacity − used, 0) × 100 ÷ capacity
//
// MostAllocated and LeastAllocated are accepted as names of Pack and Spread.
//
// Divisions are rounded down. A resource that the node does not have counts
// as 0.
//
// A container that requests no cpu counts as 100m, and one that requests no memory as 200
// MiB, also for running tasks. NodeResourcesFitPlus of Koordinator and the scores of
// Kubernetes do the same. A pod has as many containers as its spec lists; a task of a Job
// or of a Model is one container. So a pod in which one container requests a core and
// another requests nothing uses 1.1 cores. A task that requests no cpu at all is not
// scored by cpu, but leaves 0.1 cores less for the next task that is.
//
// The plugin does not check whether the task fits, and does not apply to models.
//
// A configuration replaces the resources that are scored:
//
//	plugins:
//	- name: NodeResourcesFitPlus
//	  arguments:
//	    resources:
//	      nvidia.com/gpu: {type: Pack, weight: 3}
//	      cpu: {type: Spread, weight: 1}
package noderesourcesfitplus

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/nearest"
)

// Name is the plugin's name in a profile.
const Name = "NodeResourcesFitPlus"

// The strategies.
const (
	Pack   = "Pack"   // the fuller the better
	Spread = "Spread" // the emptier the better
)

// spellings maps the names that kube-scheduler uses to the strategies.
var spellings = map[string]string{"MostAllocated": Pack, "LeastAllocated": Spread}

// Arguments are the plugin's arguments.
type Arguments struct {
	// Resources are the resources that are scored, by name. Unless given, nvidia.com/gpu is
	// packed with weight 2, and cpu and memory are spread with weight 1 each.
	Resources map[string]Strategy `json:"resources"`
}

// Strategy is how one resource is scored.
type Strategy struct {
	Type   string `json:"type"`   // Pack or Spread. It is required.
	Weight int64  `json:"weight"` // How much the resource counts, from 1 to 100000. It is required.
}

var defaults = map[string]Strategy{
	cluster.DefaultDeviceResource: {Pack, 2},
	cluster.CPU:                   {Spread, 1},
	cluster.Memory:                {Spread, 1},
}

type plugin struct {
	engine.FixedHooks
	resources []resource
}

// resource is one configured resource.
type resource struct {
	name   string
	weight int64
	spread bool
}

// New builds the plugin from its Arguments.
var New = engine.WithArguments(nil, build)

func build(a Arguments) (engine.Plugin, error) {
	if a.Resources == nil {
		a.Resources = defaults
	}
	if len(a.Resources) == 0 {
		return nil, fmt.Errorf("resources is empty, so every node would score the same; name a resource, or leave the field out for the default")
	}
	p := &plugin{}
	for _, name := range slices.Sorted(maps.Keys(a.Resources)) {
		c := a.Resources[name]
		c.Type = cmp.Or(spellings[c.Type], c.Type)
		if name == "" {
			return nil, fmt.Errorf("resources: a resource has no name; write one such as cpu")
		}
		if c.Type != Pack && c.Type != Spread {
			return nil, fmt.Errorf("resources: %s: type %q is not known%s", name, c.Type, nearest.Hint(c.Type, []string{Pack, Spread}))
		}
		if c.Weight < 1 || c.Weight > engine.MaxWeight {
			return nil, fmt.Errorf("resources: %s: weight %d is not between 1 and %d; to leave the resource out of the score, remove it", name, c.Weight, engine.MaxWeight)
		}
		p.resources = append(p.resources, resource{name: name, weight: c.Weight, spread: c.Type == Spread})
	}
	return p, nil
}

func (p *plugin) Name() string { return Name }

// OnSessionOpen registers a score.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddShapeScore(matters, p.score)
	engine.EqualNodes(s.Hooks)
}

// matters excludes models, which PlacementScorer scores.
func matters(s *cluster.Shape) bool { return !s.ServesModel() }

func (p *plugin) score(s *cluster.Shape, n *cluster.Node) float64 {
	var sum, weights int64
	for i := range p.resources {
		r := &p.resources[i]
		used, capacity, requested := r.load(s, n)
		if !requested {
			continue
		}
		weights += r.weight
		if capacity <= 0 {
			continue
		}
		part := max(0, min(used, capacity))
		if r.spread {
			part = capacity - part
		}
		sum += r.weight * percent(part, capacity)
	}
	if weights == 0 {
		return 100
	}
	return float64(sum / weights)
}

// load returns what the node would have in use of the resource with the task on it.
func (r *resource) load(s *cluster.Shape, n *cluster.Node) (used, capacity int64, requested bool) {
	if take := s.Resources.Of(r.name); take > 0 {
		if l := n.Ledger(r.name); l != nil {
			return l.Used + l.LeftOut + take + s.LeftOut.Of(r.name), l.Capacity, true
		}
		return take, 0, true
	}
	if s.Need.None() || (s.Need.Resource != "" && s.Need.Resource != r.name) {
		return 0, 0, false
	}
	return r.devices(s, n)
}

// devices is load for devices, in thousandths. A request without a resource name is for
// the resource name of the node's devices.
func (r *resource) devices(s *cluster.Shape, n *cluster.Node) (used, capacity int64, requested bool) {
	counted := s.Need.Partition == "" && r.name == n.DeviceResource
	if counted {
		used, capacity = n.DeviceUsed(), n.DeviceCapacity()
	}
	var one *cluster.Device
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Lost || d.Profile != s.Need.Partition || d.Resource != r.name {
			continue
		}
		if one = d; counted {
			break
		}
		capacity += int64(cluster.Whole)
		used += int64(d.Use.Milli)
	}
	if one == nil {
		return 0, 0, counted || s.Need.Resource != ""
	}
	return used + s.Load(one, capacity), capacity, true
}

// percent returns part × 100 ÷ whole, rounded down.
func percent(part, whole int64) int64 {
	if part <= math.MaxInt64/100 {
		return part * 100 / whole
	}
	return cluster.MulDiv(part, 100, whole)
}
