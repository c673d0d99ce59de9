package model

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/estimate/backend"
	"github.com/berth-project/berth/numeral"
)

// claim turns what each device must give into what is claimed of it.
func (p *planner) claim(tensor int, f *Form) backend.Claim {
	return p.Backend.Claim(p.Utilization, tensor, f.Each, f.Parts.Activations+f.Parts.Graph+f.Parts.Overhead)
}

// oneNode adds the forms on devices of one node: the sizes that were asked for,
// or all that might do, fewest devices first.
func (p *planner) oneNode() {
	widest := p.widest()
	if !p.can(backend.Devices) {
		widest = 1
	}
	switch {
	case p.Serve.Tensor > 0 || p.Serve.Pipeline > 0:
		p.node(max(1, p.Serve.Tensor), max(1, p.Serve.Pipeline))
	case p.Place.Devices > 0:
		tensor, pipeline := p.split(p.Place.Devices)
		p.node(tensor, pipeline)
	default:
		sizes := p.tensors(widest)
		if len(sizes) == 0 {
			sizes = []int{1}
		}
		for _, t := range sizes {
			p.node(t, 1)
		}
		if p.can(backend.Nodes) {
			p.stages(sizes, widest)
		}
	}
}

// stages adds forms with stages, for devices that tensor parallelism alone does
// not fit: stages are slower. The fewest devices come first, and of so many the
// fewest stages.
func (p *planner) stages(sizes []int, widest int) {
	short := slices.DeleteFunc(slices.Clone(p.have), func(k kind) bool {
		return slices.ContainsFunc(sizes, func(t int) bool {
			c, err := p.asks(t, 1)
			return err == nil && k.gives(t, c)
		})
	})
	for devices := 2; devices <= widest && len(short) > 0; devices++ {
		for _, t := range slices.Backward(sizes) {
			if devices%t != 0 || devices == t || devices/t > p.layers() {
				continue
			}
			c, err := p.asks(t, devices/t)
			if err == nil && slices.ContainsFunc(short, func(k kind) bool { return k.gives(devices, c) }) {
				p.node(t, devices/t)
				break
			}
		}
	}
}

// asks is what is claimed of each device where a replica is divided so.
func (p *planner) asks(tensor, pipeline int) (backend.Claim, error) {
	var f Form
	var err error
	f.Each, f.Parts, err = p.need(tensor, pipeline)
	return p.claim(tensor, &f), err
}

// split divides so many devices: as much tensor parallelism as divides the heads.
func (p *planner) split(devices int) (tensor, pipeline int) {
	tensor = 1
	for _, t := range p.tensors(devices) {
		if devices%t == 0 {
			tensor = t
		}
	}
	if !p.can(backend.Nodes) {
		return devices, 1
	}
	return tensor, devices / tensor
}

// layers bounds the stages of a pipeline.
func (p *planner) layers() int {
	if p.Source == nil || p.Source.Architecture == nil {
		return 1
	}
	return p.Source.Architecture.Layers
}

// node adds the form with so much parallelism on one node.
func (p *planner) node(tensor, pipeline int) {
	n := tensor * pipeline
	f := Form{Name: deviceName(tensor, pipeline), Tensor: tensor, Pipeline: pipeline, Devices: n, Nodes: 1}
	if why := p.divides(tensor); why != "" {
		p.left(f, "%s", why)
		return
	}
	if !p.can(backend.Devices) && n > 1 {
		p.left(f, "%s uses one device", p.Backend.Name)
		return
	}
	var err error
	if f.Each, f.Parts, err = p.need(tensor, pipeline); err != nil {
		p.left(f, "%s", err)
		return
	}
	c := p.claim(tensor, &f)
	shape := p.shape(p.Backend.Host)
	shape.Need = cluster.Need{Devices: n, Types: p.types, Selected: p.Place.Selected, SameProduct: n > 1}
	if c.Share > 0 {
		shape.Need.Share, shape.Need.SumAtLeast = c.Share, c.Enough*cluster.Bytes(n)
	} else {
		shape.Need.Memory = c.Enough
	}
	if n > 1 {
		shape.Need.Products = p.combined()
	}
	f.tasks = []piece{{"server", 1, shape}}
	if best, ok := p.ever(n, c); !ok {
		f.Problem = best // kept all the same if nothing else is left, to be refused with its numbers
	}
	p.forms = append(p.forms, f)
	if n == 1 {
		p.onSlices(f, c)
	}
}

// onSlices adds the form on one slice of each profile that holds it. Where there
// is nothing but slices and none does, the largest is asked for, to be refused.
func (p *planner) onSlices(f Form, c backend.Claim) {
	var seen []string
	on := func(profile, problem string) {
		shape := f.tasks[0].shape
		shape.Need.Partition = profile
		own := f
		own.Name, own.Problem, own.tasks = "1 slice "+profile, problem, []piece{{"server", 1, shape}}
		p.forms = append(p.forms, own)
	}
	for i := range p.slices {
		k := &p.slices[i]
		if slices.Contains(seen, k.profile) || !k.gives(1, c) {
			continue
		}
		seen = append(seen, k.profile)
		on(k.profile, "")
	}
	if n := len(p.slices); n > 0 && len(p.have) == 0 && len(seen) == 0 {
		k := &p.slices[n-1]
		on(k.profile, fmt.Sprintf("it must give %s, and gives %s", gib(c.Enough), gib(k.share(c.Share))))
	}
}

// ever reports whether idle devices of some kind would do, and if not, why.
func (p *planner) ever(n int, c backend.Claim) (string, bool) {
	most, product := cluster.Bytes(0), ""
	for i := range p.have {
		k := &p.have[i]
		if k.gives(n, c) {
			return "", true
		}
		if has := k.share(c.Share); k.most() >= n && has > most {
			most, product = has, k.product
		}
	}
	switch {
	case product == "" && n == 1:
		return "no node has a device that it runs on", false
	case product == "":
		return fmt.Sprintf("no node has %s that it runs on", numeral.Count(n, "device")), false
	case c.Within(most) < c.Static:
		return fmt.Sprintf("weights and KV cache take %s of each device and may fill %s of it, and the largest, %s, gives them %s",
			gib(c.Static), percent(c.Fraction), product, gib(c.Within(most))), false
	case c.Share > 0:
		return fmt.Sprintf("each device must give %s, and the largest, %s, gives %s (%s of it)", gib(c.Enough), product, gib(most), percent(c.Share)), false
	}
	return fmt.Sprintf("each device must give %s, and the largest, %s, has %s", gib(c.Enough), product, gib(most)), false
}

func deviceName(tensor, pipeline int) string {
	return numeral.Count(tensor*pipeline, "device") + division(tensor, pipeline)
}

// division is how a name says that a model is divided, "" where it is not.
func division(tensor, pipeline int) string {
	switch {
	case tensor*pipeline == 1:
		return ""
	case pipeline == 1:
		return fmt.Sprintf(" (tp %d)", tensor)
	}
	return fmt.Sprintf(" (tp %d, pp %d)", tensor, pipeline)
}
