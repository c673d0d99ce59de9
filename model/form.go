package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/estimate"
	"github.com/berth-project/berth/estimate/backend"
)

// Form is one way to lay a replica out. Those with a problem were looked at and
// left out, and say why.
type Form struct {
	Name             string
	Tensor, Pipeline int
	Devices          int // of each node; 0: as many as it takes, or none
	Nodes            int
	Group            string        // the only group it is for; "": any
	Each             cluster.Bytes // that it needs of each device
	Parts            estimate.Breakdown
	Problem          string

	tasks []piece
	whole *cluster.WholeNodes
}

// piece is so many equal tasks of a form.
type piece struct {
	role  string
	count int
	shape cluster.Shape
}

// planner works out the forms of one model on one cluster.
type planner struct {
	*Spec
	groups []*cluster.Group // with devices that the backend runs on, in key order
	types  []string         // that the backend runs on; nil: any
	have   []kind           // of devices, by group and product
	slices []kind           // of MIG slices that go by their profile, the smallest first
	forms  []Form
	hoped  []string // forms that cannot fit and are asked for all the same
}

// can reports whether the backend may be tried so.
func (p *planner) can(s backend.Strategy) bool { return slices.Contains(p.Backend.Strategies, s) }

// left notes a form that will not do.
func (p *planner) left(f Form, format string, args ...any) {
	f.Problem = fmt.Sprintf(format, args...)
	p.forms = append(p.forms, f)
}

// shape is what all tasks of the model have in common.
func (p *planner) shape(host cluster.Bytes) cluster.Shape {
	s := cluster.Shape{
		Resources: cluster.Resources{{Name: cluster.CPU}, {Name: cluster.Memory}},
		Selector:  cluster.SortLabels(p.labels()), Tolerations: p.Tolerations, Isolation: p.Isolation,
		Preemptible: p.Preemptible, Strategy: p.Place.Strategy, Backend: p.Backend.Name, Files: p.Files,
	}
	for _, a := range p.Resources {
		s.Resources = s.Resources.With(a.Name, a.Value)
	}
	if p.Place.InstanceType != "" {
		s.Tolerations = append(slices.Clone(s.Tolerations), cluster.Toleration{Key: taintKey, Operator: "Equal", Value: taintValue, Effect: cluster.NoSchedule})
	}
	switch {
	case p.Memory.Host > 0:
		s.Resources = s.Resources.With(cluster.Memory, int64(p.Memory.Host))
	case p.Resources.Of(cluster.Memory) < int64(host):
		s.Resources = s.Resources.With(cluster.Memory, int64(host))
	}
	return s
}

// labels that nodes must have: those asked for, and the instance type.
func (p *planner) labels() map[string]string {
	if p.Place.InstanceType == "" {
		return p.Place.Selector
	}
	out := maps.Clone(p.Place.Selector)
	if out == nil {
		out = map[string]string{}
	}
	out[instanceTypeLabel] = p.Place.InstanceType
	return out
}

// need is what each device must give where a replica is divided so.
func (p *planner) need(tensor, pipeline int) (cluster.Bytes, estimate.Breakdown, error) {
	n := cluster.Bytes(tensor * pipeline)
	switch {
	case p.Memory.Device > 0:
		return p.Memory.Device, estimate.Breakdown{}, nil
	case p.Memory.Total > 0:
		return (p.Memory.Total + n - 1) / n, estimate.Breakdown{}, nil
	case p.Source == nil:
		return 0, estimate.Breakdown{}, fmt.Errorf("how much memory it needs is not known: give memory.device or memory.total, or a source that can be read")
	}
	parts, err := p.parts(p.Source, tensor, pipeline)
	if err != nil {
		return 0, parts, err
	}
	if p.Draft != nil {
		more, err := p.parts(p.Draft, p.draftTensor(tensor), 1)
		if err != nil {
			return 0, parts, fmt.Errorf("draft: %w", err)
		}
		parts.Weights += more.Weights
		parts.KVCache += more.KVCache
		parts.Activations += more.Activations
	}
	parts.Weights += p.Adapters
	return parts.Total(), parts, nil
}

// parts is what one model takes of each device.
func (p *planner) parts(m *estimate.Model, tensor, pipeline int) (estimate.Breakdown, error) {
	f := p.serve(m)
	f.Tensor, f.Pipeline = tensor, pipeline
	if m.Architecture != nil {
		return m.Device(f)
	}
	return m.Even(tensor * pipeline)
}

// serve is the form with what the backend adds.
func (p *planner) serve(m *estimate.Model) estimate.Form {
	f := p.Backend.Form(p.Serve)
	if a := m.Architecture; a != nil && a.MaxContext > 0 && f.Context > a.MaxContext {
		f.Context = a.MaxContext // a draft sees no further than it can
	}
	return f
}

// draftTensor is how the draft is divided where the model is divided so: alike
// if its heads allow it.
func (p *planner) draftTensor(tensor int) int {
	for _, t := range slices.Backward(p.Backend.Sizes(p.Draft, tensor)) {
		if tensor%t == 0 {
			return t
		}
	}
	return 1
}

// tensors are the sizes that tensor parallelism may have, up to the most.
func (p *planner) tensors(most int) []int {
	if p.Memory.Device == 0 && p.Memory.Total == 0 && p.Source != nil && p.Source.Architecture != nil {
		return p.Backend.Sizes(p.Source, most)
	}
	var out []int
	for t := 1; t <= most; t *= 2 {
		out = append(out, t)
	}
	return out
}

// divides says why a size of tensor parallelism will not do; "" if it will.
func (p *planner) divides(tensor int) string {
	m := p.Source
	if p.Memory.Device > 0 || p.Memory.Total > 0 || m == nil || m.Architecture == nil {
		m = &estimate.Model{} // of which nothing is known but what the backend demands
	}
	if err := p.Backend.Divides(m, tensor); err != nil {
		return err.Error()
	}
	return ""
}
