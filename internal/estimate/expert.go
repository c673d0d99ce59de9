package estimate

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// CheckExperts returns an error that says why the experts of the model cannot be divided over
// the tensor × data devices of s; nil: they can, or s does not divide them.
func (m *Model) CheckExperts(s Serving) error {
	if !s.Expert {
		return nil
	}
	a, devices := m.Architecture, orElse(s.Tensor, 1)*orElse(s.Data, 1)
	switch {
	case a.Experts == 0:
		return fmt.Errorf("model %s has no experts that could be divided", m.Name)
	case a.Experts%devices != 0:
		return fmt.Errorf("the %d experts of model %s do not divide over %d devices", a.Experts, m.Name, devices)
	}
	return nil
}

// ExpertSaving returns how many bytes of weights fewer than PerDevice says each device holds
// because the experts are divided over tensor × data devices, and not over the devices of one
// data-parallel rank. It is never too much.
func (m *Model) ExpertSaving(s Serving) cluster.Bytes {
	t, d := int64(orElse(s.Tensor, 1)), int64(orElse(s.Data, 1))
	if !s.Expert || d == 1 || m.Architecture == nil || m.Architecture.Experts == 0 {
		return 0
	}
	s.Pipeline = orElse(s.Pipeline, 1)
	stage := int64(m.Architecture.layersPerStage(s))
	experts := cluster.MulDiv(int64(m.leastExperts()), stage, int64(m.Architecture.Layers))
	return cluster.Bytes(experts/t - cluster.MulDivUp(experts, 1, t*d))
}

// leastExperts returns a lower bound for the weights of all routed experts. A configuration
// does not say how many layers have experts, so it is derived from the number of weights: it
// is the fewest layers that account for all of them, if every layer also has attention and an
// MLP as wide as all active experts. All other weights are counted with at least 16 bits,
// because formats that quantise experts often leave them as they are.
func (m *Model) leastExperts() cluster.Bytes {
	a, bits := m.Architecture, int64(orElse(m.Weights.Bits, 1600))
	numbers := cluster.MulDiv(int64(m.Weights.Layers), 800, bits)
	each := product(int64(a.Experts), 3, int64(a.Hidden), int64(a.Width))
	if each == 0 {
		return 0
	}
	mlp := product(3, int64(a.Hidden), int64(max(a.Intermediate, a.Width*(a.Active+1))))
	layers := (numbers - int64(a.Layers)*(a.attentionNumbers()+mlp) + each - 1) / each
	others := numbers - min(max(0, layers), int64(a.Layers))*each
	return max(0, m.Weights.Layers-cluster.Bytes(cluster.MulDivUp(others, max(1600, bits), 800)))
}

// attentionNumbers returns an upper bound for the weights of the attention of one layer.
func (a *Architecture) attentionNumbers() int64 {
	hidden, heads, dims := int64(a.Hidden), int64(a.Heads), int64(a.HeadDim+a.valueDim())
	if l := a.Latent; l != nil {
		return product(hidden, heads, dims) + product(hidden, int64(l.Rank+l.Rope)) + product(int64(l.Rank), heads, dims)
	}
	return product(hidden, heads+int64(a.KVHeads), dims)
}
