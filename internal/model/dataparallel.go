package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
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

// onProduct returns the form on devices of the product; nil if there is none.
func (v *dataParallel) onProduct(product string) *Form {
	o := v.node
	for devices := 1; o.hardware.nodesWith(product, devices) > 0; devices++ {
		tensor, stages, ok := v.split(devices)
		if !ok || o.parallel.problem(tensor, stages) != "" {
			continue
		}
		f := Form{Tensor: tensor, Pipeline: stages, Devices: devices, Nodes: 1}
		c, err := o.size.claim(&f, o.hardware.accelerator(product))
		if err != nil || o.hardware.largestOfProduct(product, devices, c.Share) < c.Enough {
			continue
		}
		ranks := o.spec.ranks()
		f.Name = fmt.Sprintf("%d ranks with %d × %s%s", ranks, devices, product, parallelismSuffix(tensor, stages, ranks))
		shape := o.spec.shape(o.spec.Backend.Host)
		shape.Need = cluster.Need{Devices: devices, Types: o.hardware.types, Selected: o.spec.Place.Selected, Products: []string{product}, SameProduct: devices > 1}
		setClaim(&shape.Need, c)
		f.tasks = []roleTasks{{"leader", 1, &shape}, {"worker", ranks - 1, &shape}}
		return &f
	}
	return nil
}

// split returns the parallelism of a rank on this many devices. It returns false if the spec
// fixes another number.
func (v *dataParallel) split(devices int) (tensor, stages int, ok bool) {
	s := v.node.spec
	if t, p := max(1, s.Serving.Tensor), max(1, s.Serving.Pipeline); s.Serving.Tensor > 0 || s.Serving.Pipeline > 0 {
		return t, p, t*p == devices
	}
	tensor, stages = v.node.parallel.split(devices)
	return tensor, stages, s.Place.Devices == 0 && stages == 1 || s.Place.Devices == devices*v.node.spec.ranks()
}
