package model

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// sizing is how much memory a replica of a model needs.
type sizing struct{ spec *Spec }

// claim fills in what the form needs of each device, and returns what is claimed
// of it.
func (z sizing) claim(f *Form) (backend.Claim, error) {
	var err error
	f.Each, f.Parts, err = z.each(f.Tensor, f.Pipeline)
	return z.spec.Backend.Claim(z.spec.Utilization, f.Tensor, f.Each, f.Parts.Activations+f.Parts.Graph+f.Parts.Overhead), err
}

// each is what each device must give where a replica is divided so.
func (z sizing) each(tensor, pipeline int) (cluster.Bytes, estimate.Breakdown, error) {
	s, n := z.spec, cluster.Bytes(tensor*pipeline)
	switch {
	case s.Memory.Device > 0:
		return s.Memory.Device, estimate.Breakdown{}, nil
	case s.Memory.Total > 0:
		return (s.Memory.Total + n - 1) / n, estimate.Breakdown{}, nil
	case s.Source == nil:
		return 0, estimate.Breakdown{}, fmt.Errorf("how much memory it needs is not known: give memory.device or memory.total, or a source that can be read")
	}
	parts, err := z.parts(s.Source, tensor, pipeline)
	if err != nil {
		return 0, parts, err
	}
	if s.Draft != nil {
		more, err := z.draft(tensor)
		if err != nil {
			return 0, parts, fmt.Errorf("draft: %w", err)
		}
		parts.Weights += more.Weights
		parts.KVCache += more.KVCache
		parts.Activations += more.Activations
	}
	parts.Weights += s.Adapters
	return parts.Total(), parts, nil
}

// parts is what one model takes of each device.
func (z sizing) parts(m *estimate.Model, tensor, pipeline int) (estimate.Breakdown, error) {
	f := z.serve(m)
	f.Tensor, f.Pipeline = tensor, pipeline
	if m.Architecture != nil {
		return m.Device(f)
	}
	return m.Even(tensor * pipeline)
}

// serve is how a model is served, with what the backend adds.
func (z sizing) serve(m *estimate.Model) estimate.Form {
	f := z.spec.Backend.Form(z.spec.Serve)
	if a := m.Architecture; a != nil && a.MaxContext > 0 && f.Context > a.MaxContext {
		f.Context = a.MaxContext // a draft sees no further than it can
	}
	return f
}

// draft is what the draft takes of each device: divided as the model is, if its
// heads allow it, and whole beside the layers of a model.
func (z sizing) draft(tensor int) (estimate.Breakdown, error) {
	d := z.spec.Draft
	if !z.spec.layered() {
		for _, t := range slices.Backward(z.spec.Backend.Sizes(d, tensor)) {
			if tensor%t == 0 {
				return z.parts(d, t, 1)
			}
		}
	} else if d.Layered != nil {
		n, err := d.Layered.Of(z.serve(d))
		return n.Whole, err
	}
	return z.parts(d, 1, 1)
}

// layers is what the layers of a model take, and how much of it lies beside the
// layers of each device. A draft and adapters count whole on each: where layers
// are divided that is more than they take, never less.
func (z sizing) layers() (need estimate.LayeredNeed, beside cluster.Bytes, err error) {
	if need, err = z.spec.Source.Layered.Of(z.serve(z.spec.Source)); err != nil {
		return need, 0, err
	}
	if beside, err = z.spec.Beside(1); err != nil {
		return need, 0, fmt.Errorf("draft: %w", err)
	}
	need.Fixed += beside
	need.Alone += beside
	return need, beside, nil
}

// host is what the node's memory must hold where there is no device.
func (z sizing) host() (cluster.Bytes, error) {
	if z.spec.layered() {
		need, _, err := z.layers()
		return need.Alone, err
	}
	each, _, err := z.each(1, 1)
	return each, err
}
