package model

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// parallelism is how a replica of a model may be divided over devices: by tensor,
// and into stages of a pipeline.
type parallelism struct{ spec *Spec }

// divided reports whether it is known what is divided. Where the spec says how
// much memory a replica needs, its source does not matter.
func (p parallelism) divided() bool {
	return !p.spec.Memory.known() && p.spec.Source != nil && p.spec.Source.Architecture != nil
}

// tensors are the sizes that tensor parallelism may have, up to the most.
func (p parallelism) tensors(most int) []int {
	if p.divided() {
		return p.spec.Backend.Sizes(p.spec.Source, most)
	}
	var out []int
	for t := 1; t <= most; t *= 2 {
		out = append(out, t)
	}
	return out
}

// divides says why a size of tensor parallelism will not do; "" if it will.
func (p parallelism) divides(tensor int) string {
	m := &estimate.Model{} // of which nothing is known but what the backend demands
	if p.divided() {
		m = p.spec.Source
	}
	if err := p.spec.Backend.Divides(m, tensor); err != nil {
		return err.Error()
	}
	return ""
}

// split divides so many devices: as much tensor parallelism as divides the heads.
func (p parallelism) split(devices int) (tensor, pipeline int) {
	if !p.spec.can(backend.Nodes) {
		return devices, 1
	}
	tensor = 1
	for _, t := range p.tensors(devices) {
		if devices%t == 0 {
			tensor = t
		}
	}
	return tensor, devices / tensor
}

// within is the tensor parallelism within a whole node: the largest that divides
// its devices and the model.
func (p parallelism) within(key cluster.GroupKey) int {
	if key.Combines() {
		for t := key.Count; t > 1; t-- {
			if key.Count%t == 0 && p.divides(t) == "" {
				return t
			}
		}
	}
	return 1
}

// layers bounds the stages of a pipeline.
func (p parallelism) layers() int {
	if p.spec.Source == nil || p.spec.Source.Architecture == nil {
		return 1
	}
	return p.spec.Source.Architecture.Layers
}
