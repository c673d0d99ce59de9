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

// byLayers lays a replica out layer by layer.
type byLayers struct {
	spec   *Spec
	have   *hardware
	need   estimate.LayeredNeed
	beside cluster.Bytes // of what is fixed on each device, the draft and the adapters
}

// forms are on one device, several, several nodes, and partly or wholly in the
// memory of a node.
func (b *byLayers) forms() []Form {
	var out []Form
	devices := b.spec.Place.Devices
	l := cluster.Layers{Total: b.need.Layers, Bytes: b.need.Bytes, Fixed: b.need.Fixed}
	if devices <= 1 {
		// On one device nothing is divided, so the layers count as what they really are.
		held := b.need.Whole.Weights + b.need.Whole.KVCache
		beside := b.need.Whole.Total() - held + b.beside
		f := b.onDevices("1 device", 1, held+beside, cluster.Layers{Total: 1, Bytes: held, Fixed: beside})
		out = append(append(out, f), b.have.onSlices(f, backend.Claim{Enough: held + beside})...)
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
		return append(out, left(Form{Name: "partial offload"}, "placement.cpuOffload is not set"))
	}
	l.Spill, l.Least = true, 1
	return append(out, b.onDevices("partial offload", devices, 0, l), onHost(b.spec, b.need.Alone))
}

// onDevices is a form on devices of one node; 0 devices: as many as it takes.
func (b *byLayers) onDevices(name string, devices int, each cluster.Bytes, l cluster.Layers) Form {
	if devices == 0 && b.have.apart() {
		devices = 1
	}
	shape := b.spec.shape(max(b.need.Host, b.spec.Backend.Host))
	shape.Need = cluster.Need{Devices: devices, Types: b.have.types, Selected: b.spec.Place.Selected, Layers: &l, SameProduct: devices != 1}
	if devices != 1 {
		shape.Need.Products = b.have.combined()
	}
	return Form{
		Name: name, Tensor: 1, Pipeline: 1, Devices: devices, Nodes: 1, Each: each, Parts: b.need.Whole,
		Problem: b.have.holds(devices, l), tasks: []piece{{"server", 1, shape}},
	}
}

// onNodes are forms over several nodes, each with an equal part of the layers.
func (b *byLayers) onNodes(l cluster.Layers) []Form {
	f := Form{Name: "several nodes"}
	if !b.spec.Place.Distributed {
		return []Form{left(f, "placement.distributed is not set")}
	}
	ways := b.ways(l)
	if n := b.spec.Place.Devices; len(ways) == 0 && n > 0 {
		return []Form{left(f, "%s of one product cannot be divided evenly over several nodes so that they hold it", english.Count(n, "device"))}
	} else if len(ways) == 0 {
		return []Form{left(f, "no device holds a single layer of %s", gib(l.Fixed+l.Bytes))}
	}
	var out []Form
	for _, w := range ways {
		part := l
		part.Total = (l.Total + w.nodes - 1) / w.nodes
		shape := b.spec.shape(max(b.need.Host, b.spec.Backend.Host))
		shape.Need = cluster.Need{Devices: w.each, Types: b.have.types, Selected: b.spec.Place.Selected, Layers: &part, SameProduct: true, Products: []string{w.product}}
		rest := shape
		rest.Resources = b.spec.shape(b.spec.Backend.Host).Resources
		f := Form{
			Name: fmt.Sprintf("%d nodes of %s", w.nodes, w.product), Tensor: 1, Pipeline: w.nodes, Devices: w.each, Nodes: w.nodes, Parts: b.need.Whole,
			tasks: []piece{{"leader", 1, shape}, {"worker", w.nodes - 1, rest}},
		}
		if w.nodes > w.exist {
			f = left(f, "it takes %d nodes with %s, and there are %d", w.nodes, w.product, w.exist)
		}
		out = append(out, f)
	}
	return out
}

// way is how layers are divided over several nodes.
type way struct {
	nodes   int
	product string
	each    int // devices of each node; 0: as many as it takes
	exist   int // nodes that have the product
}

// ways are for each product the fewest nodes that hold the layers, and some
// more; or all numbers of nodes that divide the devices that were asked for. Where
// more nodes than exist are needed, it is the fewest alone.
func (b *byLayers) ways(l cluster.Layers) []way {
	const more = 2 // with some room taken, a node or two beyond the fewest may do
	devices := b.spec.Place.Devices
	best, widest, exist := map[string]int{}, map[string]int{}, map[string]int{}
	for i := range b.have.kinds {
		if k := &b.have.kinds[i]; k.combines {
			if !slices.ContainsFunc(b.have.kinds[:i], func(o kind) bool { return o.product == k.product && o.group == k.group }) {
				exist[k.product] += len(k.group.Nodes)
			}
			best[k.product] = max(best[k.product], k.count*l.Within(k.memory))
			widest[k.product] = max(widest[k.product], k.count)
		}
	}
	var ways []way
	for product, on := range best {
		if on == 0 {
			continue
		}
		fewest := max(2, (l.Total+on-1)/on)
		last := min(fewest+more, MostNodes, l.Total)
		if devices > 0 {
			last = min(devices, MostNodes, l.Total)
		}
		found := false
		for n := fewest; n <= last && (n <= exist[product] || !found); n++ {
			each := devices / n
			if each*n == devices && each <= widest[product] {
				ways = append(ways, way{n, product, each, exist[product]})
				found = true
			}
		}
	}
	slices.SortFunc(ways, func(a, b way) int { return cmp.Or(a.nodes-b.nodes, strings.Compare(a.product, b.product)) })
	return ways
}

// onHost is the form without devices, with all in the memory of a node.
func onHost(s *Spec, memory cluster.Bytes) Form {
	f := Form{Name: "CPU", Tensor: 1, Pipeline: 1, Nodes: 1}
	if types, err := s.Backend.Types(s.Version); err != nil || !slices.Contains(types, "cpu") {
		return left(f, "%s does not run on cpu", s.Backend.Name)
	}
	if len(s.Place.Selected) > 0 {
		return left(f, "placement.devices selects devices")
	}
	if s.Place.Devices > 0 {
		return left(f, "placement.devicesPerReplica asks for devices")
	}
	shape := s.shape(memory)
	shape.Resources = shape.Resources.With(cluster.Memory, max(shape.Resources.Of(cluster.Memory), int64(memory)))
	f.tasks = []piece{{"server", 1, shape}}
	return f
}
