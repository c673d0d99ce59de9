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
	extra    cluster.Bytes // what the draft and the adapters take of each device
}

// forms returns the forms on one device, on several devices, on several nodes, and
// partly or entirely in the memory of a node.
func (b *byLayers) forms() []Form {
	if n := b.spec.Place.DeviceLayers; n > 0 && n < b.need.Layers {
		return b.withLayersOnDevices(n)
	}
	out := b.onAllNumbers(b.wholeModel(), b.need.Divisible(b.need.Divided))
	switch {
	case b.spec.Place.DeviceLayers > 0:
		return append(out, withProblem(Form{Name: "partial offload"}, "placement.deviceLayers requests all layers on devices"))
	case !b.spec.Place.Offload:
		return append(out, withProblem(Form{Name: "partial offload"}, "placement.cpuOffload is not set"))
	}
	l := b.need.Divisible(b.need.Partly)
	l.Spill, l.Least = true, 1
	return append(out, b.onDevices("partial offload", b.spec.Place.Devices, 0, l), cpuForm(b.spec, b.need.HostOnly))
}

// withLayersOnDevices returns the forms with exactly n layers on devices, the last ones. The
// node of the task must have memory for the others.
func (b *byLayers) withLayersOnDevices(n int) []Form {
	all := b.need.Divisible(b.need.Partly)
	outside := all.Total - n
	l := cluster.LayersOf(all.Each()[outside:], all.Fixed)
	l.Outside = outside
	own := *b
	own.need.Host = max(b.need.Host, b.spec.Backend.Host) + all.First(outside)
	return own.onAllNumbers(l, l)
}

// onAllNumbers returns the forms on one device, with the layers one, and on several devices
// and nodes, with the layers several.
func (b *byLayers) onAllNumbers(one, several cluster.Layers) []Form {
	out := append(b.onOneDevice(one), b.onSeveralDevices(several)...)
	return append(out, b.onNodes(several, out)...)
}

// wholeModel returns the layers of the model on one device.
func (b *byLayers) wholeModel() cluster.Layers {
	// Without the sizes of the layers, the true size of the model is that of one layer.
	l := cluster.Layers{Total: 1, Bytes: b.need.Whole.Weights + b.need.Whole.KVCache}
	if b.need.Sizes != nil {
		l = cluster.LayersOf(b.need.Sizes, 0)
	}
	l.Fixed = b.need.Whole.Total() + b.extra - l.All()
	return l
}

// onOneDevice returns the form on one device, and those on one slice.
func (b *byLayers) onOneDevice(l cluster.Layers) []Form {
	if b.spec.Place.Devices > 1 {
		return nil
	}
	all := l.Fixed + l.All()
	f := b.onDevices("1 device", 1, all, l)
	return append([]Form{f}, b.hardware.onSlicesWith(f, slices.Repeat([]backend.Claim{{Enough: all}}, len(b.hardware.slices)), b.spec.Place.Partition)...)
}

// onSeveralDevices returns the forms on several devices of a node, those with the fewest
// devices first: a node that holds the model on fewer devices is preferred, whatever its
// score. The last form takes as many devices as the layers need.
func (b *byLayers) onSeveralDevices(l cluster.Layers) []Form {
	switch n := b.spec.Place.Devices; {
	case n == 1:
		return nil
	case n > 1:
		return []Form{b.onDevices(english.Count(n, "device"), n, 0, l)}
	}
	var out []Form
	for n := 2; n < b.hardware.maxDevices(); n++ {
		if f := b.onDevices(english.Count(n, "device"), n, 0, l); f.Problem == "" {
			out = append(out, f)
		}
	}
	return append(out, b.onDevices("several devices", 0, 0, l))
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
		Problem: b.hardware.layersShortfall(devices, each, l), tasks: []roleTasks{{"server", 1, &shape}},
	}
}

// partsOf divides layers over nodes, about the same number for each. The last layers, among
// them the output layer, are on the node of the leader. All workers get the same request:
// each of its layers is as large as the largest at that place in the part of any worker.
func partsOf(l cluster.Layers, nodes int) (leader, worker cluster.Layers) {
	sizes, each, more := l.Each(), l.Total/nodes, l.Total%nodes
	most := make([]cluster.Bytes, each+min(more, 1))
	start := 0
	for i := range nodes - 1 {
		end := start + each
		if i < more {
			end++
		}
		for k, b := range sizes[start:end] {
			most[k] = max(most[k], b)
		}
		start = end
	}
	leader = cluster.LayersOf(sizes[l.Total-each:], l.Fixed)
	leader.Outside = l.Outside
	return leader, cluster.LayersOf(most, l.Fixed)
}

// onNodes returns forms over several nodes. Each node holds about the same number of layers.
func (b *byLayers) onNodes(l cluster.Layers, onNode []Form) []Form {
	f := Form{Name: "several nodes"}
	if why := b.spec.notOverNodes(onNode); why != "" {
		return []Form{withProblem(f, "%s", why)}
	}
	splits := b.nodeSplits(l)
	if n := b.spec.Place.Devices; len(splits) == 0 && n > 0 {
		return []Form{withProblem(f, "%s of one product cannot be divided evenly over several nodes so that they hold it", english.Count(n, "device"))}
	} else if len(splits) == 0 {
		return []Form{withProblem(f, "no device holds a single layer of %s", gib(l.Fixed+l.Bytes))}
	}
	var out []Form
	for _, w := range splits {
		last, others := partsOf(l, w.nodes)
		shape := b.spec.shape(max(b.need.Host, b.spec.Backend.Host))
		shape.Need = cluster.Need{Devices: w.each, Types: b.hardware.types, Selected: b.spec.Place.Selected, Layers: &last, SameProduct: true, Products: []string{w.product}}
		rest := shape
		rest.Resources = b.spec.shape(b.spec.Backend.Host).Resources
		rest.Need.Layers = &others
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
	classes, widest, exist := map[string][]*deviceClass{}, map[string]int{}, map[string]int{}
	for i := range b.hardware.classes {
		if k := &b.hardware.classes[i]; k.combines {
			if !slices.ContainsFunc(b.hardware.classes[:i], func(o deviceClass) bool { return o.product == k.product && o.group == k.group }) {
				exist[k.product] += len(k.group.Nodes)
			}
			classes[k.product] = append(classes[k.product], k)
			widest[k.product] = max(widest[k.product], k.count)
		}
	}
	var splits []nodeSplit
	for product := range classes {
		fewest := fewestNodes(l, classes[product])
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

// fewestNodes returns the smallest number of nodes, from 2, over which the layers can be
// divided on nodes with all devices of one of the classes. It returns more than
// MaxNodesPerReplica if there is none.
func fewestNodes(l cluster.Layers, classes []*deviceClass) int {
	for n := 2; n <= min(MaxNodesPerReplica, l.Total); n++ {
		leader, worker := partsOf(l, n)
		if slices.ContainsFunc(classes, func(k *deviceClass) bool {
			return leader.Held(k.count, k.memory) == leader.Total && worker.Held(k.count, k.memory) == worker.Total
		}) {
			return n
		}
	}
	return MaxNodesPerReplica + 1
}

// cpuForm returns the form without devices, with the whole model in the memory of a
// node. If the spec sets the node's memory, that is requested even if the estimate is more.
// But if it also sets the memory of devices, the node must hold that much.
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
	if s.Memory.known() {
		shape.Resources = shape.Resources.With(cluster.Memory, max(shape.Resources.Of(cluster.Memory), int64(memory)))
	}
	f.Host = memory
	f.tasks = []roleTasks{{"server", 1, &shape}}
	return f
}
