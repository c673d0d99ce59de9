package model

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// oneNode lists the forms of a replica on devices of one node.
type oneNode struct {
	spec     *Spec
	size     sizing
	parallel parallelism
	hardware *hardware
	chosen   []*cluster.Device // the devices that were selected by hand for one replica, of one node; nil: none
}

// forms returns the form of the size that the spec fixes, or else one form for each
// possible size, those with the fewest devices first. If the spec fixes the stages, the tensor
// parallelism is chosen. If it fixes the tensor parallelism, there is one stage.
func (o *oneNode) forms() []Form {
	s := o.spec
	switch {
	case s.Serving.Tensor > 0 && s.Serving.Pipeline > 0:
		return o.withParallelism(s.Serving.Tensor, s.Serving.Pipeline)
	case s.Place.Devices > 0 && s.Serving.Tensor == 0 && s.Serving.Pipeline == 0:
		return o.withParallelism(o.parallel.split(s.Place.Devices / o.spec.ranks()))
	}
	widest, stages := 1, max(1, s.Serving.Pipeline)
	if s.supports(backend.Devices) {
		widest = max(1, o.hardware.maxDevices()/o.spec.ranks())
	}
	sizes := o.parallel.tensorSizes(widest / stages)
	if s.Serving.Tensor > 0 {
		sizes = []int{s.Serving.Tensor}
	}
	if len(sizes) == 0 {
		sizes = []int{1}
	}
	var out []Form
	for _, t := range sizes {
		out = append(out, o.withParallelism(t, stages)...)
	}
	if s.supports(backend.Nodes) && s.Serving.Tensor == 0 && s.Serving.Pipeline == 0 {
		out = append(out, o.pipelineForms(sizes, widest)...)
	}
	return out
}

// pipelineForms returns forms with pipeline stages. Stages are slower than tensor
// parallelism, so they are listed only for classes of devices that no form with tensor
// parallelism alone fits. The forms with the fewest devices come first. For each number
// of devices, the form with the fewest stages is returned.
func (o *oneNode) pipelineForms(sizes []int, widest int) []Form {
	ranks := o.spec.ranks()
	short := slices.DeleteFunc(slices.Clone(o.hardware.classes), func(k deviceClass) bool {
		return slices.ContainsFunc(sizes, func(t int) bool {
			c, err := o.size.claim(&Form{Tensor: t, Pipeline: 1}, k.accelerator)
			return err == nil && k.canGive(t*ranks, c)
		})
	})
	var out []Form
	for devices := 2; devices <= widest && len(short) > 0; devices++ {
		for _, t := range slices.Backward(sizes) {
			if devices%t != 0 || devices == t || devices/t > o.parallel.layers() {
				continue
			}
			if slices.ContainsFunc(short, func(k deviceClass) bool {
				c, err := o.size.claim(&Form{Tensor: t, Pipeline: devices / t}, k.accelerator)
				return err == nil && k.canGive(devices*ranks, c)
			}) {
				out = append(out, o.withParallelism(t, devices/t)...)
				break
			}
		}
	}
	return out
}

// withParallelism returns the form with this parallelism. A form of one device is
// followed by the forms on one MIG slice.
func (o *oneNode) withParallelism(tensor, pipeline int) []Form {
	ranks := o.spec.ranks()
	n := tensor * pipeline * ranks
	f := Form{Name: english.Count(n, "device") + parallelismSuffix(tensor, pipeline, ranks), Tensor: tensor, Pipeline: pipeline, Devices: n, Nodes: 1}
	if why := o.parallel.problem(tensor, pipeline); why != "" {
		return []Form{withProblem(f, "%s", why)}
	}
	if !o.spec.supports(backend.Devices) && n > 1 {
		return []Form{withProblem(f, "%s uses one device", o.spec.Backend.Name)}
	}
	claims, c, err := o.size.claims(&f, o.hardware.classes)
	if err != nil {
		return []Form{withProblem(f, "%s", err)}
	}
	shape := o.spec.shape(o.spec.Backend.Host)
	shape.Need = cluster.Need{Devices: n, Types: o.hardware.types, Selected: o.spec.Place.Selected, SameProduct: n > 1}
	setClaim(&shape.Need, c)
	f.tasks = []roleTasks{{"server", 1, &shape}}
	if devices := o.chosen; n > 1 && n == len(devices) {
		shape.Need.SameProduct, f.Problem = false, o.size.selectedShortfall(devices, &f)
		return []Form{f}
	}
	if c.Share > 0 {
		shape.Need.Sums = o.hardware.sums(n, claims, c)
		shape.Need.SameProduct = n > 1 || len(shape.Need.Sums) > 0
	}
	if n > 1 {
		shape.Need.Products = o.hardware.combinableProducts()
	}
	f.Problem = o.hardware.memoryShortfall(n, claims) // if no form is without a problem, this one is requested anyway: its refusal has figures
	if n > 1 {
		return []Form{f}
	}
	return append([]Form{f}, o.hardware.onSlices(f, o.size, o.spec.Place.Partition)...)
}

// shapeOn returns the shape of a task on this many devices of the product, with what is claimed of
// each.
func (s *Spec) shapeOn(h *hardware, product string, devices int, c backend.Claim) cluster.Shape {
	shape := s.shape(s.Backend.Host)
	shape.Need = cluster.Need{Devices: devices, Types: h.types, Selected: s.Place.Selected, Products: []string{product}, SameProduct: devices > 1}
	setClaim(&shape.Need, c)
	return shape
}

// setClaim sets what is claimed of each of the devices.
func setClaim(n *cluster.Need, c backend.Claim) {
	if c.Share > 0 {
		n.Share, n.SumAtLeast = c.Share, c.Enough*cluster.Bytes(n.Devices)
	} else {
		n.Memory = c.Enough
	}
}

// parallelismSuffix returns the part of a form's name that says how the model is
// divided; "" if it is not divided.
func parallelismSuffix(tensor, pipeline, ranks int) string {
	if tensor*pipeline*ranks == 1 {
		return ""
	}
	text := fmt.Sprintf("tp %d", tensor)
	if pipeline > 1 {
		text += fmt.Sprintf(", pp %d", pipeline)
	}
	if ranks > 1 {
		text += fmt.Sprintf(", dp %d", ranks)
	}
	return " (" + text + ")"
}
