package model

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// oneNode lays a replica out on devices of one node.
type oneNode struct {
	spec *Spec
	size sizing
	par  parallelism
	have *hardware
}

// forms have the size that the spec requests, or all sizes that might do, fewest
// devices first.
func (o *oneNode) forms() []Form {
	s := o.spec
	switch {
	case s.Serve.Tensor > 0 || s.Serve.Pipeline > 0:
		return o.on(max(1, s.Serve.Tensor), max(1, s.Serve.Pipeline))
	case s.Place.Devices > 0:
		return o.on(o.par.split(s.Place.Devices))
	}
	widest := 1
	if s.can(backend.Devices) {
		widest = o.have.widest()
	}
	sizes := o.par.tensors(widest)
	if len(sizes) == 0 {
		sizes = []int{1}
	}
	var out []Form
	for _, t := range sizes {
		out = append(out, o.on(t, 1)...)
	}
	if s.can(backend.Nodes) {
		out = append(out, o.stages(sizes, widest)...)
	}
	return out
}

// stages are forms with stages, for devices that tensor parallelism alone does
// not fit: stages are slower. The fewest devices come first, and of so many the
// fewest stages.
func (o *oneNode) stages(sizes []int, widest int) []Form {
	short := slices.DeleteFunc(slices.Clone(o.have.kinds), func(k kind) bool {
		return slices.ContainsFunc(sizes, func(t int) bool {
			c, err := o.size.claim(&Form{Tensor: t, Pipeline: 1})
			return err == nil && k.gives(t, c)
		})
	})
	var out []Form
	for devices := 2; devices <= widest && len(short) > 0; devices++ {
		for _, t := range slices.Backward(sizes) {
			if devices%t != 0 || devices == t || devices/t > o.par.layers() {
				continue
			}
			c, err := o.size.claim(&Form{Tensor: t, Pipeline: devices / t})
			if err == nil && slices.ContainsFunc(short, func(k kind) bool { return k.gives(devices, c) }) {
				out = append(out, o.on(t, devices/t)...)
				break
			}
		}
	}
	return out
}

// on is the form with so much parallelism, followed by those on one slice.
func (o *oneNode) on(tensor, pipeline int) []Form {
	n := tensor * pipeline
	f := Form{Name: english.Count(n, "device") + division(tensor, pipeline), Tensor: tensor, Pipeline: pipeline, Devices: n, Nodes: 1}
	if why := o.par.divides(tensor); why != "" {
		return []Form{left(f, "%s", why)}
	}
	if !o.spec.can(backend.Devices) && n > 1 {
		return []Form{left(f, "%s uses one device", o.spec.Backend.Name)}
	}
	c, err := o.size.claim(&f)
	if err != nil {
		return []Form{left(f, "%s", err)}
	}
	shape := o.spec.shape(o.spec.Backend.Host)
	shape.Need = cluster.Need{Devices: n, Types: o.have.types, Selected: o.spec.Place.Selected, SameProduct: n > 1}
	if c.Share > 0 {
		shape.Need.Share, shape.Need.SumAtLeast = c.Share, c.Enough*cluster.Bytes(n)
	} else {
		shape.Need.Memory = c.Enough
	}
	if n > 1 {
		shape.Need.Products = o.have.combined()
	}
	f.tasks = []piece{{"server", 1, shape}}
	f.Problem = o.have.gives(n, c) // kept all the same if nothing else is left, to be refused with its numbers
	if n > 1 {
		return []Form{f}
	}
	return append([]Form{f}, o.have.onSlices(f, c)...)
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
