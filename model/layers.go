package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/estimate"
	"github.com/berth-project/berth/estimate/backend"
	"github.com/berth-project/berth/numeral"
)

// layered reports whether the model is split layer by layer: its backend can
// offload layers, its file says what they are, and nobody knows better.
func (p *planner) layered() bool {
	return p.can(backend.Offload) && p.Memory.Device == 0 && p.Memory.Total == 0 && p.Source != nil && p.Source.Layered != nil
}

// byLayers adds the forms of such a model.
func (p *planner) byLayers() error {
	need, err := p.layersNeed()
	if err != nil {
		return err
	}
	l := cluster.Layers{Total: need.Layers, Bytes: need.Bytes, Fixed: need.Fixed}
	if p.Place.Devices <= 1 {
		// On one device nothing is divided, so the layers count as what they really are.
		held := need.Whole.Weights + need.Whole.KVCache
		beside := need.Whole.Total() - held + need.beside
		p.onDevices("1 device", 1, held+beside, need, cluster.Layers{Total: 1, Bytes: held, Fixed: beside})
		p.onSlices(p.forms[len(p.forms)-1], backend.Claim{Enough: held + beside})
	}
	if p.Place.Devices != 1 {
		name := "several devices"
		if p.Place.Devices > 1 {
			name = numeral.Count(p.Place.Devices, "device")
		}
		p.onDevices(name, p.Place.Devices, 0, need, l)
	}
	p.remote(need, l)
	if !p.Place.Offload {
		p.left(Form{Name: "partial offload"}, "placement.cpuOffload is not set")
		return nil
	}
	l.Spill, l.Least = true, 1
	p.onDevices("partial offload", p.Place.Devices, 0, need, l)
	p.onHost(need.Alone)
	return nil
}

// layersNeed is what the layers take, with what lies beside them.
type layersNeed struct {
	estimate.LayeredNeed
	beside cluster.Bytes // of Fixed, the draft and the adapters
}

// layersNeed counts a draft and adapters whole beside the layers of each device:
// where layers are divided that is more than it takes, never less.
func (p *planner) layersNeed() (layersNeed, error) {
	need, err := p.Source.Layered.Of(p.serve(p.Source))
	if err != nil {
		return layersNeed{}, err
	}
	beside := p.Adapters
	if p.Draft != nil {
		draft, err := p.draftBeside()
		if err != nil {
			return layersNeed{}, fmt.Errorf("draft: %w", err)
		}
		beside += draft
	}
	need.Fixed += beside
	need.Alone += beside
	return layersNeed{need, beside}, nil
}

// draftBeside is what a draft takes of a device, whole.
func (p *planner) draftBeside() (cluster.Bytes, error) {
	if p.Draft.Layered != nil {
		n, err := p.Draft.Layered.Of(p.serve(p.Draft))
		return n.Whole.Weights + n.Whole.KVCache + n.Whole.Activations, err
	}
	b, err := p.parts(p.Draft, 1, 1)
	return b.Weights + b.KVCache + b.Activations, err
}

// onDevices adds a form on devices of one node; 0 devices: as many as it takes.
func (p *planner) onDevices(name string, devices int, each cluster.Bytes, need layersNeed, l cluster.Layers) {
	if devices == 0 && p.apart() {
		devices = 1
	}
	shape := p.shape(max(need.Host, p.Backend.Host))
	shape.Need = cluster.Need{Devices: devices, Types: p.types, Selected: p.Place.Selected, Layers: &l, SameProduct: devices != 1}
	if devices != 1 {
		shape.Need.Products = p.combined()
	}
	f := Form{Name: name, Tensor: 1, Pipeline: 1, Devices: devices, Nodes: 1, Each: each, Parts: need.Whole}
	f.tasks = []piece{{"server", 1, shape}}
	if best, ok := p.holds(devices, l); !ok {
		f.Problem = best
	}
	p.forms = append(p.forms, f)
}

// holds reports whether idle devices of one node hold the layers,
// and if not, why.
func (p *planner) holds(devices int, l cluster.Layers) (string, bool) {
	least := l.Total
	if l.Spill {
		least = l.Least
	}
	most, name := 0, ""
	for i := range p.have {
		k := &p.have[i]
		n := k.most()
		if devices > 0 {
			if n < devices {
				continue
			}
			n = devices
		}
		if on := n * l.Within(k.memory); on > most || name == "" {
			most, name = on, k.product
			if devices == 0 || n > 1 {
				name = fmt.Sprintf("%d × %s", n, k.product)
			}
		}
	}
	if name != "" && most >= least {
		return "", true
	}
	if name == "" {
		return fmt.Sprintf("no node has %s that it runs on", numeral.Count(max(1, devices), "device")), false
	}
	if l.Total == 1 { // nothing is divided
		return fmt.Sprintf("one device must give %s, and none has so much", gib(l.Fixed+l.Bytes)), false
	}
	return fmt.Sprintf("%s must be on devices, and at most %d fit, on %s", numeral.Count(least, "layer"), min(most, l.Total), name), false
}

// remote adds forms over several nodes, each with an equal part of the layers.
func (p *planner) remote(need layersNeed, l cluster.Layers) {
	if !p.Place.Distributed {
		p.left(Form{Name: "several nodes"}, "placement.distributed is not set")
		return
	}
	ways := p.remoteWays(l)
	if len(ways) == 0 {
		problem := fmt.Sprintf("no device holds a single layer of %s", gib(l.Fixed+l.Bytes))
		if n := p.Place.Devices; n > 0 {
			problem = fmt.Sprintf("%s of one product cannot be divided evenly over several nodes so that they hold it", numeral.Count(n, "device"))
		}
		p.left(Form{Name: "several nodes"}, "%s", problem)
	}
	for _, w := range ways {
		part := l
		part.Total = (l.Total + w.nodes - 1) / w.nodes
		shape := p.shape(max(need.Host, p.Backend.Host))
		shape.Need = cluster.Need{Devices: w.each, Types: p.types, Selected: p.Place.Selected, Layers: &part, SameProduct: true, Products: []string{w.product}}
		rest := shape
		rest.Resources = p.shape(p.Backend.Host).Resources
		f := Form{
			Name: fmt.Sprintf("%d nodes of %s", w.nodes, w.product), Tensor: 1, Pipeline: w.nodes, Devices: w.each, Nodes: w.nodes, Parts: need.Whole,
			tasks: []piece{{"leader", 1, shape}, {"worker", w.nodes - 1, rest}},
		}
		if w.nodes > w.exist {
			f.Problem = fmt.Sprintf("it takes %d nodes with %s, and there are %d", w.nodes, w.product, w.exist)
		}
		p.forms = append(p.forms, f)
	}
}

// way is how layers go over several nodes.
type way struct {
	nodes   int
	product string
	each    int // devices of each node; 0: as many as it takes
	exist   int // nodes that have the product
}

// remoteWays are for each product the fewest nodes that hold the layers, and some
// more; or all numbers of nodes that divide the devices that were asked for. Where
// more nodes than exist are needed, it is the fewest alone.
func (p *planner) remoteWays(l cluster.Layers) []way {
	const more = 2 // with some room taken, a node or two beyond the fewest may do
	best, widest, exist := map[string]int{}, map[string]int{}, map[string]int{}
	for i := range p.have {
		if k := &p.have[i]; k.combines {
			if !slices.ContainsFunc(p.have[:i], func(o kind) bool { return o.product == k.product && o.group == k.group }) {
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
		if p.Place.Devices > 0 {
			last = min(p.Place.Devices, MostNodes, l.Total)
		}
		found := false
		for n := fewest; n <= last && (n <= exist[product] || !found); n++ {
			each := p.Place.Devices / n
			if each*n == p.Place.Devices && each <= widest[product] {
				ways = append(ways, way{n, product, each, exist[product]})
				found = true
			}
		}
	}
	slices.SortFunc(ways, func(a, b way) int { return cmp.Or(a.nodes-b.nodes, strings.Compare(a.product, b.product)) })
	return ways
}

// onHost adds the form without devices.
func (p *planner) onHost(memory cluster.Bytes) {
	f := Form{Name: "CPU", Tensor: 1, Pipeline: 1, Nodes: 1}
	if types, err := p.Backend.Types(p.Version); err != nil || !slices.Contains(types, "cpu") {
		p.left(f, "%s does not run on cpu", p.Backend.Name)
		return
	}
	if len(p.Place.Selected) > 0 {
		p.left(f, "placement.devices selects devices")
		return
	}
	if p.Place.Devices > 0 {
		p.left(f, "placement.devicesPerReplica asks for devices")
		return
	}
	shape := p.shape(memory)
	shape.Resources = shape.Resources.With(cluster.Memory, max(shape.Resources.Of(cluster.Memory), int64(memory)))
	f.tasks = []piece{{"server", 1, shape}}
	p.forms = append(p.forms, f)
}
