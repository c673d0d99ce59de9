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

// knownSizes is what specs with one key have in common.
type knownSizes struct {
	claims  map[claimKey]knownClaim
	tensors tensorSizes
}

// maxSizings is how many entries Fleet.sizings has at most.
const maxSizings = 10_000

// sizing returns the sizing of the spec, and its sizes of tensor parallelism. Specs that serve
// the same model in the same way share what was computed for them.
func (f *Fleet) sizing(s *Spec) (sizing, *tensorSizes) {
	key := sizingKey{s.Source, s.Draft, s.Backend.Name, s.Version, s.Serving, s.Utilization, s.Memory, s.Adapters}
	shared := f.sizings[key]
	if shared == nil {
		if len(f.sizings) >= maxSizings {
			clear(f.sizings)
		}
		shared = &knownSizes{claims: map[claimKey]knownClaim{}}
		f.sizings[key] = shared
	}
	return sizing{s, shared.claims}, &shared.tensors
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
	dynamic := f.Parts.Activations
	if m.Architecture != nil { // otherwise the overhead may be a cache
		dynamic += f.Parts.Graph + f.Parts.Overhead
	}
	return z.spec.Backend.Claim(z.spec.Utilization, m, s, d, f.PerDevice, dynamic)
}

// claims returns what the backend claims of each device of each class, and the claim that a task
// requests of any of them. Of shares, that is the one with the least memory, because each product
// has its own sum in the request. Of bytes, it is the largest on a device that has as many bytes,
// so that it is enough on each. PerDevice and Parts of the form are those of that claim. If the
// cluster has no class, it is the claim on a device of which nothing is known.
func (z sizing) claims(f *Form, classes []deviceClass) (each []backend.Claim, requested backend.Claim, err error) {
	if len(classes) == 0 {
		requested, err = z.claim(f, backend.Accelerator{})
		return nil, requested, err
	}
	each = make([]backend.Claim, len(classes))
	best, enough := *f, false // enough: a device has as many bytes as are requested
	for i := range classes {
		if i > 0 && classes[i].accelerator == classes[i-1].accelerator && classes[i].memory == classes[i-1].memory {
			each[i] = each[i-1]
			continue
		}
		c, err := z.claim(f, classes[i].accelerator)
		if err != nil {
			return nil, requested, err
		}
		each[i] = c
		large := c.Share == 0 && classes[i].memory >= f.PerDevice
		if i == 0 || large && (!enough || c.Enough > requested.Enough) || !large && !enough && c.Enough < requested.Enough {
			best, requested, enough = *f, c, large
		}
	}
	*f = best
	return each, requested, nil
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
	more, err := s.DraftAndAdapters(tensor, d)
	if err != nil {
		return 0, parts, fmt.Errorf("draft: %w", err)
	}
	parts.Weights += more.Weights
	parts.KVCache += more.KVCache
	parts.Activations += more.Activations
	return parts.Total(), parts, nil
}

// breakdown returns what one model, the draft or the served one, takes of each device.
func (z sizing) breakdown(m *estimate.Model, tensor, pipeline int, d backend.Accelerator) (estimate.Breakdown, error) {
	if m.Architecture != nil {
		return m.PerDevice(z.serving(m, tensor, pipeline, d))
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
	beside, err := z.spec.DraftAndAdapters(1, backend.Accelerator{})
	if err != nil {
		return need, 0, fmt.Errorf("draft: %w", err)
	}
	extra = beside.Total()
	need.Divided.Each += extra
	need.Partly.Each += extra
	need.HostOnly += extra
	return need, extra, nil
}

// DraftAndAdapters returns what the draft model and the adapters take of each device of this
// kind at this tensor parallelism. The draft has the graphs and the runtime of the model.
func (s *Spec) DraftAndAdapters(tensor int, on backend.Accelerator) (estimate.Breakdown, error) {
	out := estimate.Breakdown{Weights: s.Adapters}
	if s.Draft == nil {
		return out, nil
	}
	b, err := sizing{spec: s}.draftNeed(tensor, on)
	out.Weights += b.Weights
	out.KVCache, out.Activations = b.KVCache, b.Activations
	if s.Draft.Architecture == nil { // the overhead stands for all that is not known
		out.Weights += b.Overhead
	}
	return out, err
}

// hostMemory returns how much of the node's memory the replica takes if it has no device.
func (z sizing) hostMemory() (cluster.Bytes, error) {
	if z.spec.layered() {
		need, _, err := z.layeredNeed()
		return need.HostOnly, err
	}
	each, _, err := z.perDevice(1, 1, backend.Accelerator{})
	if s := z.spec; err == nil && !s.Memory.known() && s.Source.Architecture != nil {
		each -= z.serving(s.Source, 1, 1, backend.Accelerator{}).Overhead // there is no runtime of a device
	}
	return each, err
}
