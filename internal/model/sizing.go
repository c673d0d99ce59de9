package model

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// sizing computes how much memory a replica of a model needs. It remembers the claims that
// it has computed, because many forms have the same parallelism on the same devices. The spec
// must not change after that.
type sizing struct {
	spec  *Spec
	known map[claimKey]knownClaim // nil if claim is not called
}

// claimKey is what a claim depends on.
type claimKey struct {
	tensor, pipeline int
	on               backend.Accelerator
}

// knownClaim is a result of sizing.claim.
type knownClaim struct {
	perDevice cluster.Bytes
	parts     estimate.Breakdown
	claim     backend.Claim
	err       error
}

// sizingKey is what the claims of a spec depend on, apart from the parallelism and the device.
// A model does not change after it has been read, and backends of one name have the same
// settings.
type sizingKey struct {
	source, draft    *estimate.Model
	backend, version string
	serving          estimate.Serving
	utilization      cluster.Milli
	memory           Memory
	adapters         cluster.Bytes
}

// sizing returns the sizing of the spec. Specs that serve the same model in the same way
// share the claims.
func (f *Fleet) sizing(s *Spec) sizing {
	key := sizingKey{s.Source, s.Draft, s.Backend.Name, s.Version, s.Serving, s.Utilization, s.Memory, s.Adapters}
	claims, known := f.sizings[key]
	if !known {
		claims = map[claimKey]knownClaim{}
		f.sizings[key] = claims
	}
	return sizing{s, claims}
}

// claim sets PerDevice and Parts of the form, and returns what the backend claims of each
// device of this kind.
func (z sizing) claim(f *Form, d backend.Accelerator) (backend.Claim, error) {
	key := claimKey{f.Tensor, f.Pipeline, d}
	k, known := z.known[key]
	if !known {
		if f.PerDevice, f.Parts, k.err = z.perDevice(f.Tensor, f.Pipeline, d); k.err == nil {
			k.claim = z.claimOf(f, d)
		}
		k.perDevice, k.parts = f.PerDevice, f.Parts
		z.known[key] = k
	}
	f.PerDevice, f.Parts = k.perDevice, k.parts
	return k.claim, k.err
}

// claimOf returns what the backend claims of each device of this kind for a form whose
// memory is known.
func (z sizing) claimOf(f *Form, d backend.Accelerator) backend.Claim {
	m := z.spec.Source
	if m == nil || z.spec.Memory.known() {
		m = &estimate.Model{}
		d.Unusable = 0 // the spec says what a device must give
	}
	s := z.spec.Serving
	s.Tensor, s.Pipeline = f.Tensor, f.Pipeline
	return z.spec.Backend.Claim(z.spec.Utilization, m, s, d, f.PerDevice, f.Parts.Activations+f.Parts.Graph+f.Parts.Overhead)
}

// claims returns what the backend claims of each device of each class, and the claim with
// the least memory. PerDevice and Parts of the form are those of the least claim. If the
// cluster has no class, the least claim is that of a device of which nothing is known.
func (z sizing) claims(f *Form, classes []deviceClass) (each []backend.Claim, least backend.Claim, err error) {
	if len(classes) == 0 {
		least, err = z.claim(f, backend.Accelerator{})
		return nil, least, err
	}
	each = make([]backend.Claim, len(classes))
	best := *f
	for i := range classes {
		if i > 0 && classes[i].accelerator == classes[i-1].accelerator {
			each[i] = each[i-1]
			continue
		}
		if each[i], err = z.claim(f, classes[i].accelerator); err != nil {
			return nil, least, err
		}
		if i == 0 || each[i].Enough < least.Enough {
			best, least = *f, each[i]
		}
	}
	*f = best
	return each, least, nil
}

// perDevice returns the memory that each device must give at this parallelism, from the
// spec or else from the estimate.
func (z sizing) perDevice(tensor, pipeline int, d backend.Accelerator) (cluster.Bytes, estimate.Breakdown, error) {
	s, n := z.spec, cluster.Bytes(tensor*pipeline*z.spec.ranks())
	switch {
	case s.Memory.Device > 0:
		return s.Memory.Device, estimate.Breakdown{}, nil
	case s.Memory.Total > 0:
		return (s.Memory.Total + n - 1) / n, estimate.Breakdown{}, nil
	case s.Source == nil:
		return 0, estimate.Breakdown{}, fmt.Errorf("the memory that it needs is not known; set memory.device or memory.total, or a source that can be read")
	}
	parts, err := z.breakdown(s.Source, tensor, pipeline, d)
	if err != nil {
		return 0, parts, err
	}
	if s.Draft != nil {
		more, err := z.draftNeed(tensor, d)
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
func (z sizing) breakdown(m *estimate.Model, tensor, pipeline int, d backend.Accelerator) (estimate.Breakdown, error) {
	if m.Architecture != nil {
		f := z.serving(m, tensor, pipeline, d)
		b, err := m.PerDevice(f)
		b.Weights -= m.ExpertSaving(f)
		return b, err
	}
	return m.PerDeviceEvenly(tensor * pipeline)
}

// serving returns how a model is served on devices of this kind: as the spec says, with what
// the backend adds. m may be nil.
func (z sizing) serving(m *estimate.Model, tensor, pipeline int, d backend.Accelerator) estimate.Serving {
	if m == nil {
		m = &estimate.Model{}
	}
	s := z.spec.Serving
	s.Tensor, s.Pipeline = tensor, pipeline
	if a := m.Architecture; a != nil && a.MaxContext > 0 && s.Context > a.MaxContext {
		s.Context = a.MaxContext // a draft may have a shorter context than the model
	}
	return z.spec.Backend.WithDefaults(m, s, d)
}

// draftNeed returns what the draft takes of each device. It is divided like the model as
// far as its heads allow. If the model is divided by layers, the draft is whole on each
// device.
func (z sizing) draftNeed(tensor int, on backend.Accelerator) (estimate.Breakdown, error) {
	d := z.spec.Draft
	if !z.spec.layered() {
		for _, t := range slices.Backward(z.spec.Backend.TensorSizes(d, tensor)) {
			if tensor%t == 0 {
				return z.breakdown(d, t, 1, on)
			}
		}
	} else if d.Layered != nil {
		n, err := d.Layered.Need(z.serving(d, 1, 1, on))
		return n.Whole, err
	}
	return z.breakdown(d, 1, 1, on)
}

// layeredNeed returns what the layers of a model take, and how many bytes of it the
// draft and the adapters take on each device. Both are counted whole on each device,
// which is never too little.
func (z sizing) layeredNeed() (need estimate.LayeredNeed, extra cluster.Bytes, err error) {
	if need, err = z.spec.Source.Layered.Need(z.serving(z.spec.Source, 1, 1, backend.Accelerator{})); err != nil {
		return need, 0, err
	}
	if extra, err = z.spec.DraftAndAdapterMemory(1, backend.Accelerator{}); err != nil {
		return need, 0, fmt.Errorf("draft: %w", err)
	}
	need.Divided.Each += extra
	need.Partly.Each += extra
	need.HostOnly += extra
	return need, extra, nil
}

// DraftAndAdapterMemory returns the bytes that the draft model and the adapters take of
// each device of this kind at this tensor parallelism.
func (s *Spec) DraftAndAdapterMemory(tensor int, on backend.Accelerator) (cluster.Bytes, error) {
	if s.Draft == nil {
		return s.Adapters, nil
	}
	b, err := sizing{spec: s}.draftNeed(tensor, on)
	return s.Adapters + b.Weights + b.KVCache + b.Activations, err
}

// hostMemory returns how much of the node's memory the replica takes if it has no device.
func (z sizing) hostMemory() (cluster.Bytes, error) {
	if z.spec.layered() {
		need, _, err := z.layeredNeed()
		return need.HostOnly, err
	}
	each, _, err := z.perDevice(1, 1, backend.Accelerator{})
	return each, err
}
