package model

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// parallelism says how a replica may be divided over devices: by tensor parallelism and
// into pipeline stages.
type parallelism struct {
	spec  *Spec
	known *tensorSizes // nil: nothing is remembered
}

// tensorSizes remembers the possible sizes of tensor parallelism up to most.
type tensorSizes struct {
	most  int
	sizes []int
}

// hasArchitecture reports whether the heads of the model are known and limit the tensor
// parallelism, also if the spec sets the memory. A backend that divides a model layer by
// layer divides no heads.
func (p parallelism) hasArchitecture() bool {
	return p.spec.Source != nil && p.spec.Source.Architecture != nil && !p.spec.supports(backend.Offload)
}

// tensorSizes returns the possible sizes of tensor parallelism up to most, in ascending
// order. For a model of unknown architecture these are the powers of two.
func (p parallelism) tensorSizes(most int) []int {
	if p.hasArchitecture() {
		if p.known == nil {
			return p.spec.Backend.TensorSizes(p.spec.Source, most)
		}
		if most > p.known.most {
			p.known.most, p.known.sizes = most, p.spec.Backend.TensorSizes(p.spec.Source, most)
		}
		n, found := slices.BinarySearch(p.known.sizes, most)
		if found {
			n++
		}
		return slices.Clip(p.known.sizes[:n])
	}
	var out []int
	for t := 1; t <= most; t *= 2 {
		out = append(out, t)
	}
	return out
}

// problem says why the model cannot be divided so; "" if it can.
func (p parallelism) problem(tensor, stages int) string {
	if why := p.tensorProblem(tensor); why != "" {
		return why
	}
	if !p.hasArchitecture() {
		return ""
	}
	if stages > p.layers() {
		return fmt.Sprintf("the %d layers of model %s cannot be divided into %d stages", p.layers(), p.spec.Source.Name, stages)
	}
	f := p.spec.Backend.WithExperts(p.spec.Serving)
	f.Tensor = tensor
	if err := p.spec.Source.CheckExperts(f); err != nil {
		return err.Error()
	}
	return ""
}

// tensorProblem says why this tensor parallelism is not possible; "" if it is possible.
func (p parallelism) tensorProblem(tensor int) string {
	m := &estimate.Model{} // without an architecture, only the backend's own rule is checked
	if p.hasArchitecture() {
		m = p.spec.Source
	}
	if err := p.spec.Backend.CheckTensor(m, tensor); err != nil {
		return err.Error()
	}
	return ""
}

// split returns the parallelism that uses this many devices, with the largest possible
// tensor parallelism. If the backend has no pipeline stages, it is tensor parallelism alone.
func (p parallelism) split(devices int) (tensor, pipeline int) {
	if !p.spec.supports(backend.Nodes) {
		return devices, 1
	}
	tensor = 1
	for _, t := range p.tensorSizes(devices) {
		if devices%t == 0 {
			tensor = t
		}
	}
	return tensor, devices / tensor
}

// withinNode returns the tensor parallelism within a whole node: the largest that divides
// the number of the node's devices and is possible for the model.
func (p parallelism) withinNode(key cluster.GroupKey) int {
	if key.Combines() {
		for t := key.Count; t > 1; t-- {
			if key.Count%t == 0 && p.tensorProblem(t) == "" {
				return t
			}
		}
	}
	return 1
}

// layers returns the number of layers, which is the most pipeline stages that are
// possible; 1 if it is not known.
func (p parallelism) layers() int {
	if p.spec.Source == nil || p.spec.Source.Architecture == nil {
		return 1
	}
	return p.spec.Source.Architecture.Layers
}
