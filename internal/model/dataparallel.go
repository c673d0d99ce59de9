package model

import (
	"cmp"
	"fmt"
	"slices"
)

// dataParallel lists the forms of a replica with data-parallel ranks that may be on different
// nodes. Each rank is a task of its own. All ranks are on devices of one product.
type dataParallel struct{ node *oneNode }

// forms returns, for each product, the form with the fewest devices per rank.
func (v *dataParallel) forms() []Form {
	if !v.node.spec.Place.Distributed {
		return []Form{withProblem(Form{Name: "ranks on several nodes"}, "placement.distributed is not set")}
	}
	var out []Form
	for _, product := range v.node.hardware.productsThatCombine() {
		if f := v.onProduct(product); f != nil {
			out = append(out, *f)
		}
	}
	slices.SortStableFunc(out, func(a, b Form) int { return cmp.Compare(a.Devices, b.Devices) })
	return out
}

// onProduct returns the form on devices of the product; nil if no number of devices of a node can
// be a rank. If ranks on no number of devices hold the model, it is the form with the most of
// them, with its problem.
func (v *dataParallel) onProduct(product string) *Form {
	o := v.node
	var near *Form
	for devices := 1; o.hardware.nodesWith(product, devices) > 0; devices++ {
		tensor, stages, ok := v.split(devices)
		if !ok || o.parallel.problem(tensor, stages) != "" {
			continue
		}
		f := v.withRanks(product, tensor, stages)
		if f.Problem == "" {
			return &f
		}
		near = &f
	}
	return near
}

// withRanks returns the form in which each rank has this parallelism.
func (v *dataParallel) withRanks(product string, tensor, stages int) Form {
	o, ranks, devices := v.node, v.node.spec.ranks(), tensor*stages
	f := Form{
		Name:   fmt.Sprintf("%d ranks with %d × %s%s", ranks, devices, product, parallelismSuffix(tensor, stages, ranks)),
		Tensor: tensor, Pipeline: stages, Devices: devices, Nodes: 1,
	}
	c, err := o.size.claim(&f, o.hardware.accelerator(product))
	if err != nil {
		return withProblem(f, "%s", err)
	}
	shape := o.spec.shapeOn(o.hardware, product, devices, c)
	f.tasks = []roleTasks{{"leader", 1, &shape}, {"worker", ranks - 1, &shape}}
	if most := o.hardware.placesFor(product, devices); most < ranks {
		return withProblem(f, "it takes %d × %s, and the cluster has %d", ranks*devices, product, most*devices)
	}
	if has, reserved := o.hardware.largestOfProduct(product, devices, c.Share); has < c.Enough {
		f.Problem = claimShortfall(c, has, product, reserved)
	}
	return f
}

// placesFor returns how many ranks with this many devices of the product all nodes hold together.
func (h *hardware) placesFor(product string, devices int) int {
	n := 0
	for i := range h.classes {
		k := &h.classes[i]
		if k.product != product || !k.combines {
			continue
		}
		most := k.count
		for j := range h.classes {
			if o := &h.classes[j]; o.group == k.group && o.product == product && o.combines {
				if j < i {
					most = 0 // the group was counted
					break
				}
				most = max(most, o.count)
			}
		}
		n += len(k.group.Nodes) * (most / devices)
	}
	return n
}

// split returns the parallelism of a rank on this many devices. It returns false if the spec
// fixes another number.
func (v *dataParallel) split(devices int) (tensor, stages int, ok bool) {
	s := v.node.spec
	switch t, p := s.Serving.Tensor, max(1, s.Serving.Pipeline); {
	case t > 0:
		return t, p, t*p == devices
	case s.Serving.Pipeline > 0:
		return max(1, devices/p), p, devices%p == 0
	}
	tensor, stages = v.node.parallel.split(devices)
	return tensor, stages, s.Place.Devices == 0 && stages == 1 || s.Place.Devices == devices*v.node.spec.ranks()
}
