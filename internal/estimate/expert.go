package estimate

import (
	"cmp"
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// CheckExperts returns an error that says why the experts of the model cannot be divided over
// the tensor × data devices of s; nil: they can, or s does not divide them.
func (m *Model) CheckExperts(s Serving) error {
	a, devices := m.Architecture, cmp.Or(s.Tensor, 1)*cmp.Or(s.Data, 1)
	switch {
	case s.Expert && a.Experts == 0:
		return fmt.Errorf("model %s has no experts that could be divided", m.Name)
	case s.Expert && a.Experts < devices:
		return fmt.Errorf("model %s has %d experts, which are fewer than %d devices", m.Name, a.Experts, devices)
	case s.Expert && a.Experts%devices != 0 && !s.UnevenExperts:
		return fmt.Errorf("the %d experts of model %s do not divide over %d devices", a.Experts, m.Name, devices)
	case !s.Expert && s.dividesExperts() && a.Experts > 0 && a.Width%devices != 0:
		return fmt.Errorf("each expert of model %s is %d wide, which %d devices (tensor × data) do not divide; set parallelism.expert", m.Name, a.Width, devices)
	}
	return nil
}

// dividesExperts reports whether experts are divided over more devices than those of one
// data-parallel rank.
func (s Serving) dividesExperts() bool { return (s.Expert || s.ExpertsOverRanks) && s.Data > 1 }

// expertSaving returns how many bytes of weights fewer than weightsPerDevice says the device
// with the most experts holds, because the experts are divided over tensor × data devices and
// not over the devices of one data-parallel rank. It is never too much. It is negative if the
// device holds more than its even part of the experts.
func (m *Model) expertSaving(s Serving) cluster.Bytes {
	a, t, d := m.Architecture, int64(cmp.Or(s.Tensor, 1)), int64(cmp.Or(s.Data, 1))
	if a == nil || a.Experts == 0 || !s.Expert && !s.dividesExperts() {
		return 0
	}
	s.Pipeline = cmp.Or(s.Pipeline, 1)
	stage, layers := int64(a.layersPerStage(s)), int64(a.Layers)
	now := m.Weights.loaded(s.WeightBits).Layers
	// A device holds own of all parts of the experts.
	own, all := int64(1), t*d
	if s.Expert {
		all = int64(a.Experts)
		own = (all + t*d - 1) / (t * d)
	}
	if own*t > all { // an upper bound for the experts: all weights of the layers
		most := cluster.MulDivUp(int64(now), stage, layers)
		return cluster.Bytes(most/t - cluster.MulDivUp(most, own, all))
	}
	experts := cluster.MulDiv(int64(m.leastExperts()), stage, layers)
	if now < m.Weights.Layers {
		experts = cluster.MulDiv(experts, int64(now), int64(m.Weights.Layers))
	}
	return cluster.Bytes(max(0, experts/t-cluster.MulDivUp(experts, own, all)))
}

// leastExperts returns a lower bound for the weights of all routed experts. A configuration
// does not say how many layers have experts, so it is derived from the number of weights: it
// is the fewest layers that account for all of them, if every layer also has attention and an
// MLP as wide as all active experts. All other weights are counted with at least 16 bits,
// because formats that quantise experts often leave them as they are.
func (m *Model) leastExperts() cluster.Bytes {
	a, bits := m.Architecture, int64(cmp.Or(m.Weights.Bits, 1600))
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
