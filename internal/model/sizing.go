package model

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// sizing computes how much memory a replica of a model needs.
type sizing struct{ spec *Spec }

// claim sets PerDevice and Parts of the form, and returns what the backend claims of each
// device.
func (z sizing) claim(f *Form) (backend.Claim, error) {
	var err error
	f.PerDevice, f.Parts, err = z.perDevice(f.Tensor, f.Pipeline)
	return z.spec.Backend.Claim(z.spec.Utilization, f.Tensor, f.PerDevice, f.Parts.Activations+f.Parts.Graph+f.Parts.Overhead), err
}

// perDevice returns the memory that each device must give at this parallelism, from the
// spec or else from the estimate.
func (z sizing) perDevice(tensor, pipeline int) (cluster.Bytes, estimate.Breakdown, error) {
	s, n := z.spec, cluster.Bytes(tensor*pipeline)
	switch {
	case s.Memory.Device > 0:
		return s.Memory.Device, estimate.Breakdown{}, nil
	case s.Memory.Total > 0:
		return (s.Memory.Total + n - 1) / n, estimate.Breakdown{}, nil
	case s.Source == nil:
		return 0, estimate.Breakdown{}, fmt.Errorf("the memory that it needs is not known; set memory.device or memory.total, or a source that can be read")
	}
	parts, err := z.breakdown(s.Source, tensor, pipeline)
	if err != nil {
		return 0, parts, err
	}
	if s.Draft != nil {
		more, err := z.draftNeed(tensor)
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

// breakdown returns what one model, the draft or the served one, takes of each device.
func (z sizing) breakdown(m *estimate.Model, tensor, pipeline int) (estimate.Breakdown, error) {
	f := z.serving(m)
	f.Tensor, f.Pipeline = tensor, pipeline
	if m.Architecture != nil {
		return m.PerDevice(f)
	}
	return m.PerDeviceEvenly(tensor * pipeline)
}

// serving returns how a model is served: as the spec says, with what the backend adds.
func (z sizing) serving(m *estimate.Model) estimate.Serving {
	f := z.spec.Backend.WithDefaults(z.spec.Serving)
	if a := m.Architecture; a != nil && a.MaxContext > 0 && f.Context > a.MaxContext {
		f.Context = a.MaxContext // a draft may have a shorter context than the model
	}
	return f
}

// draftNeed returns what the draft takes of each device. It is divided like the model as
// far as its heads allow. If the model is divided by layers, the draft is whole on each
// device.
func (z sizing) draftNeed(tensor int) (estimate.Breakdown, error) {
	d := z.spec.Draft
	if !z.spec.layered() {
		for _, t := range slices.Backward(z.spec.Backend.TensorSizes(d, tensor)) {
			if tensor%t == 0 {
				return z.breakdown(d, t, 1)
			}
		}
	} else if d.Layered != nil {
		n, err := d.Layered.Need(z.serving(d))
		return n.Whole, err
	}
	return z.breakdown(d, 1, 1)
}

// layeredNeed returns what the layers of a model take, and how many bytes of it the
// draft and the adapters take on each device. Both are counted whole on each device,
// which is never too little.
func (z sizing) layeredNeed() (need estimate.LayeredNeed, extra cluster.Bytes, err error) {
	if need, err = z.spec.Source.Layered.Need(z.serving(z.spec.Source)); err != nil {
		return need, 0, err
	}
	if extra, err = z.spec.DraftAndAdapterMemory(1); err != nil {
		return need, 0, fmt.Errorf("draft: %w", err)
	}
	need.Fixed += extra
	need.HostOnly += extra
	return need, extra, nil
}

// DraftAndAdapterMemory returns the bytes that the draft model and the adapters take of
// each device at this tensor parallelism.
func (s *Spec) DraftAndAdapterMemory(tensor int) (cluster.Bytes, error) {
	if s.Draft == nil {
		return s.Adapters, nil
	}
	b, err := sizing{s}.draftNeed(tensor)
	return s.Adapters + b.Weights + b.KVCache + b.Activations, err
}

// hostMemory returns how much of the node's memory the replica takes if it has no device.
func (z sizing) hostMemory() (cluster.Bytes, error) {
	if z.spec.layered() {
		need, _, err := z.layeredNeed()
		return need.HostOnly, err
	}
	each, _, err := z.perDevice(1, 1)
	return each, err
}
