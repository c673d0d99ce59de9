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
	// chosen is the devices of one node that were selected by hand for one replica, and
	// selected those of several nodes; nil: none.
	chosen   []*cluster.Device
	selected [][]*cluster.Device
}

// forms returns the forms on one device, on several devices, on several nodes, and
// partly or entirely in the memory of a node.
func (b *byLayers) forms() []Form {
	on := b.spec.Place.DeviceLayers
	switch {
	case on != nil && *on == 0:
		return []Form{cpuForm(b.spec, b.need.HostOnly)}
	case on != nil && *on < b.need.Layers:
		return b.withLayersOnDevices(*on)
	}
	out := b.onAllNumbers(b.wholeModel(), b.divisible(b.need.Divided))
	switch {
	case on != nil:
		return append(out, withProblem(Form{Name: "partial offload"}, "placement.deviceLayers requests all layers on devices"))
	case !b.spec.Place.Offload:
		return append(out, withProblem(Form{Name: "partial offload"}, "placement.cpuOffload is not set"))
	}
	l := b.divisible(b.need.Partly)
	l.Spill, l.Least = true, 1
	out = append(out, b.onDevices("partial offload", b.spec.Place.Devices, 0, l))
	if b.spec.Place.Devices <= 1 {
		out = append(out, b.partlyOnSlices(l)...)
	}
	return append(out, cpuForm(b.spec, b.need.HostOnly))
}

// partlyOnSlices returns the forms with some of the layers on one MIG slice, those on the
// largest slices first.
func (b *byLayers) partlyOnSlices(l cluster.Layers) []Form {
	least := backend.Claim{Enough: l.Fixed + l.Bytes} // one layer, even the largest
	f := b.onDevices("", 1, 0, l)
	out := b.hardware.onSlicesWith(f, slices.Repeat([]backend.Claim{least}, len(b.hardware.slices)), b.spec.Place.Partition)
	for i := range out {
		out[i].Name = "partial offload, " + out[i].Name
	}
	slices.Reverse(out)
	return out
}

// withLayersOnDevices returns the forms with exactly n layers on devices, the last ones. The
// node of the task must have memory for the others.
func (b *byLayers) withLayersOnDevices(n int) []Form {
	all := b.divisible(b.need.Partly)
	outside := all.Total - n
	l := partOf(all, all.Each()[outside:])
	l.Outside = outside
	own := *b
	own.need.Host = max(b.need.Host, b.spec.Backend.Host) + all.First(outside)
	return own.onAllNumbers(l, l)
}

// onAllNumbers returns the forms on one device, with the layers one, and on several devices
// and nodes, with the layers several.
func (b *byLayers) onAllNumbers(one, several cluster.Layers) []Form {
	if b.selected != nil {
		return []Form{b.onSelectedNodes(several)}
	}
	out := append(b.onOneDevice(one), b.onSeveralDevices(several)...)
	return append(out, b.onNodes(several, out)...)
}

// divisible returns the layers with what each device needs in addition to its layers. A device
// that holds as many layers as fit has them in memory that is usable.
func (b *byLayers) divisible(w estimate.Working) cluster.Layers {
	l := b.need.Divisible(w)
	l.FixedOn = b.hardware.fixedOn(l.Fixed, func(d backend.Accelerator) cluster.Bytes { return d.Unusable })
	return l
}

// wholeModel returns the layers of the model on one device.
func (b *byLayers) wholeModel() cluster.Layers {
	// Without the sizes of the layers, the true size of the model is that of one layer.
	l := cluster.Layers{Total: 1, Bytes: b.need.Whole.Weights + b.need.Whole.KVCache}
	if b.need.Sizes != nil {
		l = cluster.LayersOf(b.need.Sizes, 0)
	}
	all := b.need.Whole.Total() + b.extra
	l.Fixed = all - l.All()
	l.FixedOn = b.hardware.fixedOn(l.Fixed, func(d backend.Accelerator) cluster.Bytes { return d.UnusableBeside(all) })
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
	shape.Need = cluster.Need{Devices: devices, Types: b.hardware.types, Selected: b.spec.Place.Selected, Layers: &l, SameProduct: devices != 1 && b.chosen == nil}
	if shape.Need.SameProduct {
		shape.Need.Products = b.hardware.combinableProducts()
	}
	f := Form{
		Name: name, Tensor: 1, Pipeline: 1, Devices: devices, Nodes: 1, PerDevice: each, Parts: b.need.Whole,
		tasks: []roleTasks{{"server", 1, &shape}},
	}
	if b.chosen == nil { // the engine compares the layers with devices of several products
		f.Problem = b.hardware.layersShortfall(devices, each, l)
	}
	return f
}

// onSelectedNodes returns the form on devices that were selected by hand on several nodes.
// Each node has one task, with layers in proportion to the memory of its devices.
func (b *byLayers) onSelectedNodes(l cluster.Layers) Form {
	devices := slices.Concat(b.selected...)
	f := Form{
		Name: fmt.Sprintf("%d selected devices on %d nodes", len(devices), len(b.selected)), Tensor: 1, Pipeline: len(b.selected),
		Nodes: len(b.selected), Parts: b.need.Whole,
	}
	room, least, all := make([]cluster.Bytes, len(b.selected)), make([]int, len(b.selected)), cluster.Bytes(0)
	for i, node := range b.selected {
		f.Devices, least[i] = max(f.Devices, len(node)), len(node)
		for _, d := range node {
			room[i] += max(0, d.Capacity()-l.FixedOnProduct(d.Product))
		}
		all += room[i]
	}
	for i, part := range partsByRoom(l, room, least) {
		f.tasks = append(f.tasks, b.partTask(i, part, cluster.Need{Devices: len(b.selected[i]), Selected: idsOf(b.selected[i])}))
	}
	if all < l.All() {
		need, has := gibPair(l.All(), all)
		f.Problem = fmt.Sprintf("the layers take %s, and the selected devices have %s for them", need, has)
	}
	return f
}

// partsByRoom divides layers over nodes in proportion to the memory that they have for layers.
// Each node has at least as many layers as least says, which together must not be more than
// there are. The last layers, among them the output layer, are on the first node.
func partsByRoom(l cluster.Layers, room []cluster.Bytes, least []int) []cluster.Layers {
	sizes, total := l.Each(), int64(l.All())
	var all, upTo, used cluster.Bytes
	kept := 0 // layers that later nodes must have
	for i, r := range room {
		all += r
		kept += least[i]
	}
	out := make([]cluster.Layers, len(room))
	end := len(sizes)
	for i, r := range room {
		upTo += r
		kept -= least[i]
		limit := cluster.Bytes(cluster.MulDiv(total, int64(upTo), int64(max(1, all))))
		start := end
		for start > kept && (i == len(room)-1 || end-start < least[i] || used+sizes[start-1]/2 <= limit) {
			start--
			used += sizes[start]
		}
		out[i] = partOf(l, sizes[start:end])
		end = start
	}
	out[0].Outside = l.Outside
	return out
}

// partOf returns some of the layers, with these sizes. Each device needs as much in addition to
// them.
func partOf(l cluster.Layers, sizes []cluster.Bytes) cluster.Layers {
	out := cluster.LayersOf(sizes, l.Fixed)
	out.FixedOn = l.FixedOn
	return out
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
	leader = partOf(l, sizes[l.Total-each:])
	leader.Outside = l.Outside
	return leader, partOf(l, most)
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
	if !slices.ContainsFunc(onNode, Form.isOnDevices) {
		out = append(out, b.unevenForms(l)...)
	}
	return out
}

// unevenForms returns forms over several nodes that use different numbers of devices on them.
// Each node holds layers in proportion to its devices.
func (b *byLayers) unevenForms(l cluster.Layers) []Form {
	var out []Form
	for _, product := range b.hardware.productsThatCombine() {
		each := b.hardware.largestDevice(product) - l.FixedOnProduct(product) + l.Fixed
		for devices := 3; devices <= min(l.Total, maxUnevenParts); devices++ {
			if n := b.spec.Place.Devices; n > 0 && n != devices || (each-l.Fixed)*cluster.Bytes(devices) < l.All() {
				continue
			}
			var found []Form
			for _, parts := range unevenParts(devices, b.hardware.maxDevices()) {
				if f, ok := b.onUnevenNodes(l, product, each, parts); ok && len(found) < maxUnevenForms {
					found = append(found, f)
				}
			}
			if out = append(out, found...); len(found) > 0 {
				break
			}
		}
	}
	return out
}

// onUnevenNodes returns the form with these numbers of devices on nodes, and whether idle nodes
// can hold it.
func (b *byLayers) onUnevenNodes(l cluster.Layers, product string, each cluster.Bytes, parts []int) (Form, bool) {
	if !b.hardware.haveNodes(product, 1, parts) {
		return Form{}, false
	}
	f := Form{
		Name:   fmt.Sprintf("%d nodes with %s × %s", len(parts), joinCounts(parts, 1), product),
		Tensor: 1, Pipeline: len(parts), Devices: parts[0], Nodes: len(parts), Parts: b.need.Whole,
	}
	room := make([]cluster.Bytes, len(parts))
	for i, n := range parts {
		room[i] = cluster.Bytes(n) * (each - l.Fixed)
	}
	for i, part := range partsByRoom(l, room, parts) {
		if part.Held(parts[i], each) < part.Total {
			return f, false
		}
		f.tasks = append(f.tasks, b.partTask(i, part, cluster.Need{Devices: parts[i], Selected: b.spec.Place.Selected, SameProduct: true, Products: []string{product}}))
	}
	return f, true
}

// partTask returns the task with one part of the layers. The first part is that of the leader.
func (b *byLayers) partTask(i int, part cluster.Layers, need cluster.Need) roleTasks {
	shape, role := b.spec.shape(max(b.need.Host, b.spec.Backend.Host)), "leader"
	if i > 0 {
		shape, role = b.spec.shape(b.spec.Backend.Host), "worker"
	}
	need.Types, need.Layers = b.hardware.types, &part
	shape.Need = need
	return roleTasks{role, 1, &shape}
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
			return k.held(k.count, leader) == leader.Total && k.held(k.count, worker) == worker.Total
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
