package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// byLayers lists the forms of a model that its backend divides layer by layer.
type byLayers struct {
	spec     *Spec
	hardware *hardware
	need     estimate.LayeredNeed
	extra    cluster.Bytes // how much of need.Fixed is for the draft and the adapters
}

// forms returns the forms on one device, on several devices, on several nodes, and
// partly or entirely in the memory of a node.
func (b *byLayers) forms() []Form {
	var out []Form
	devices := b.spec.Place.Devices
	l := cluster.Layers{Total: b.need.Layers, Bytes: b.need.Bytes, Fixed: b.need.Fixed}
	if devices <= 1 {
		// On one device the model is not divided, so its true size is used instead of equal layers.
		held := b.need.Whole.Weights + b.need.Whole.KVCache
		rest := b.need.Whole.Total() - held + b.extra
		f := b.onDevices("1 device", 1, held+rest, cluster.Layers{Total: 1, Bytes: held, Fixed: rest})
		out = append(append(out, f), b.hardware.onSlices(f, backend.Claim{Enough: held + rest})...)
	}
	if devices != 1 {
		name := "several devices"
		if devices > 1 {
			name = english.Count(devices, "device")
		}
		out = append(out, b.onDevices(name, devices, 0, l))
	}
	out = append(out, b.onNodes(l)...)
	if !b.spec.Place.Offload {
		return append(out, withProblem(Form{Name: "partial offload"}, "placement.cpuOffload is not set"))
	}
	l.Spill, l.Least = true, 1
	return append(out, b.onDevices("partial offload", devices, 0, l), cpuForm(b.spec, b.need.HostOnly))
}

// onDevices returns a form on devices of one node. If devices is 0, as many devices as the
// layers need are used, or one if no two devices can serve one replica. each is the memory
// that a device must give, 0 if that depends on how the layers are divided.
func (b *byLayers) onDevices(name string, devices int, each cluster.Bytes, l cluster.Layers) Form {
	if devices == 0 && b.hardware.nothingCombines() {
		devices = 1
	}
	shape := b.spec.shape(max(b.need.Host, b.spec.Backend.Host))
	shape.Need = cluster.Need{Devices: devices, Types: b.hardware.types, Selected: b.spec.Place.Selected, Layers: &l, SameProduct: devices != 1}
	if devices != 1 {
		shape.Need.Products = b.hardware.combinableProducts()
	}
	return Form{
		Name: name, Tensor: 1, Pipeline: 1, Devices: devices, Nodes: 1, PerDevice: each, Parts: b.need.Whole,
		Problem: b.hardware.layersShortfall(devices, l), tasks: []roleTasks{{"server", 1, &shape}},
	}
}

// onNodes returns forms over several nodes. Each node holds an equal number of layers.
func (b *byLayers) onNodes(l cluster.Layers) []Form {
	f := Form{Name: "several nodes"}
	if !b.spec.Place.Distributed {
		return []Form{withProblem(f, "placement.distributed is not set")}
	}
	splits := b.nodeSplits(l)
	if n := b.spec.Place.Devices; len(splits) == 0 && n > 0 {
		return []Form{withProblem(f, "%s of one product cannot be divided evenly over several nodes so that they hold it", english.Count(n, "device"))}
	} else if len(splits) == 0 {
		return []Form{withProblem(f, "no device holds a single layer of %s", gib(l.Fixed+l.Bytes))}
	}
	var out []Form
	for _, w := range splits {
		part := l
		part.Total = (l.Total + w.nodes - 1) / w.nodes
		shape := b.spec.shape(max(b.need.Host, b.spec.Backend.Host))
		shape.Need = cluster.Need{Devices: w.each, Types: b.hardware.types, Selected: b.spec.Place.Selected, Layers: &part, SameProduct: true, Products: []string{w.product}}
		rest := shape
		rest.Resources = b.spec.shape(b.spec.Backend.Host).Resources
		f := Form{
			Name: fmt.Sprintf("%d nodes of %s", w.nodes, w.product), Tensor: 1, Pipeline: w.nodes, Devices: w.each, Nodes: w.nodes, Parts: b.need.Whole,
			tasks: []roleTasks{{"leader", 1, &shape}, {"worker", w.nodes - 1, &rest}},
		}
		if w.nodes > w.existing {
			f = withProblem(f, "it takes %d nodes with %s, and there are %d", w.nodes, w.product, w.existing)
		}
		out = append(out, f)
	}
	return out
}

// nodeSplit is one way to divide layers over several nodes.
type nodeSplit struct {
	nodes    int
	product  string
	each     int // devices of each node; 0: as many as the layers need
	existing int // how many nodes have the product
}

// nodeSplits returns, for each product, splits over the fewest nodes that hold the layers
// and over one and two nodes more. If the spec fixes the number of devices, every number of
// nodes that divides it is returned instead. If even the fewest nodes are more than exist,
// only that split is returned.
func (b *byLayers) nodeSplits(l cluster.Layers) []nodeSplit {
	const more = 2 // if devices are partly in use, one or two nodes more may hold the layers
	devices := b.spec.Place.Devices
	best, widest, exist := map[string]int{}, map[string]int{}, map[string]int{}
	for i := range b.hardware.classes {
		if k := &b.hardware.classes[i]; k.combines {
			if !slices.ContainsFunc(b.hardware.classes[:i], func(o deviceClass) bool { return o.product == k.product && o.group == k.group }) {
				exist[k.product] += len(k.group.Nodes)
			}
			best[k.product] = max(best[k.product], k.count*l.Within(k.memory))
			widest[k.product] = max(widest[k.product], k.count)
		}
	}
	var splits []nodeSplit
	for product, on := range best {
		if on == 0 {
			continue
		}
		fewest := max(2, (l.Total+on-1)/on)
		last := min(fewest+more, MaxNodesPerReplica, l.Total)
		if devices > 0 {
			last = min(devices, MaxNodesPerReplica, l.Total)
		}
		found := false
		for n := fewest; n <= last && (n <= exist[product] || !found); n++ {
			each := devices / n
			if each*n == devices && each <= widest[product] {
				splits = append(splits, nodeSplit{n, product, each, exist[product]})
				found = true
			}
		}
	}
	slices.SortFunc(splits, func(a, b nodeSplit) int { return cmp.Or(a.nodes-b.nodes, strings.Compare(a.product, b.product)) })
	return splits
}

// cpuForm returns the form without devices, with the whole model in the memory of a
// node.
func cpuForm(s *Spec, memory cluster.Bytes) Form {
	f := Form{Name: "CPU", Tensor: 1, Pipeline: 1, Nodes: 1}
	if types, err := s.Backend.Types(s.Version); err != nil || !slices.Contains(types, "cpu") {
		return withProblem(f, "%s does not run on cpu", s.Backend.Name)
	}
	if len(s.Place.Selected) > 0 {
		return withProblem(f, "placement.devices selects devices")
	}
	if s.Place.Devices > 0 {
		return withProblem(f, "placement.devicesPerReplica asks for devices")
	}
	shape := s.shape(memory)
	shape.Resources = shape.Resources.With(cluster.Memory, max(shape.Resources.Of(cluster.Memory), int64(memory)))
	f.tasks = []roleTasks{{"server", 1, &shape}}
	return f
}
