// Package fit finds the fewest devices of one product that hold a model, and how the
// model is divided over them. It assumes that all devices are free. The engine decides
// where a model is placed.
package fit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// Pool is devices of one product, with the same number of devices on each node.
type Pool struct {
	Memory         cluster.Bytes // of one device
	Reserved       cluster.Bytes // of one device, for other uses
	PerNode, Nodes int
}

// Fit is how a model is divided over a pool. If Fits is false, it is the division that
// comes closest.
type Fit struct {
	Fits             bool
	Devices          int
	Tensor, Pipeline int
	// Layers is the number of layers on one device if the model is divided layer by layer; 0: it is not.
	Layers int
	Use    estimate.Breakdown // of the device that needs most
	Usable cluster.Bytes      // of each device by the model, without the draft and adapters
	// Claim is what the backend claims of each device.
	Claim backend.Claim
	// Context is the largest context that fits; 0: none fits, or the model's need does not depend on it.
	Context int
}

// Terms are parameters of a manifest in addition to the serving parameters.
type Terms struct {
	Share cluster.Milli // of each device that is claimed; 0: the backend's default
	// Beside returns what else is on each device at a tensor parallelism, such as a draft;
	// nil: nothing.
	Beside func(tensor int) (cluster.Bytes, error)
}

// On is Under with zero Terms.
func On(m *estimate.Model, b *backend.Backend, form estimate.Form, p Pool) (Fit, error) {
	return Under(Terms{}, m, b, form, p)
}

// Under finds the fewest devices that hold the model with these serving parameters. A
// parallelism that form sets is kept. If no devices hold it, the result is the division
// that comes closest, with the largest context that it holds.
func Under(t Terms, m *estimate.Model, b *backend.Backend, form estimate.Form, p Pool) (Fit, error) {
	form = b.Form(form)
	switch {
	case m.Layered != nil && slices.Contains(b.Strategies, backend.Offload):
		beside, err := t.beside(1)
		if err != nil {
			return Fit{}, err
		}
		return fitLayers(m, form, maxDevices(b, p), max(0, p.Memory-p.Reserved-beside))
	}
	layouts, err := layouts(m, b, form, p)
	if err != nil {
		return Fit{}, err
	}
	var near Fit
	for _, s := range layouts {
		f, err := t.fitLayout(m, b, s, p)
		if err != nil {
			return Fit{}, err
		}
		if f.Fits {
			return f, nil
		}
		// The closest is the layout with the longest context, then the one that exceeds the memory least.
		if near.Devices == 0 || f.Context > near.Context || f.Context == near.Context && f.Context == 0 && f.Use.Total()-f.Usable < near.Use.Total()-near.Usable {
			near = f
		}
	}
	return near, nil
}

func (t Terms) fitLayout(m *estimate.Model, b *backend.Backend, form estimate.Form, p Pool) (Fit, error) {
	beside, err := t.beside(form.Tensor)
	if err != nil {
		return Fit{}, err
	}
	f := Fit{Devices: form.Tensor * form.Pipeline, Tensor: form.Tensor, Pipeline: form.Pipeline}
	if m.Architecture == nil {
		f.Use, err = m.Even(f.Devices)
		f.Claim = b.Claim(t.Share, form.Tensor, f.Use.Total()+beside, 0)
	} else {
		f.Use, err = m.Device(form)
		f.Claim = t.claim(b, form.Tensor, f.Use, beside)
	}
	if err != nil {
		return Fit{}, err
	}
	claimed := f.Claim.Of(p.Memory, p.Reserved)
	f.Usable = max(0, claimed-beside)
	f.Fits = claimed >= f.Claim.Enough
	if m.Architecture != nil {
		f.Context, err = m.Largest(form, func(use estimate.Breakdown) bool {
			return claimed >= t.claim(b, form.Tensor, use, beside).Enough
		})
	}
	return f, err
}

// claim returns what the backend claims of a device for the model and for the draft and
// adapters.
func (t Terms) claim(b *backend.Backend, tensor int, use estimate.Breakdown, beside cluster.Bytes) backend.Claim {
	return b.Claim(t.Share, tensor, use.Total()+beside, use.Activations+use.Graph+use.Overhead)
}

func (t Terms) beside(tensor int) (cluster.Bytes, error) {
	if t.Beside == nil {
		return 0, nil
	}
	return t.Beside(tensor)
}

// maxDevices returns how many devices of the pool the backend can use together.
func maxDevices(b *backend.Backend, p Pool) int {
	switch {
	case slices.Contains(b.Strategies, backend.Nodes):
		return p.PerNode * p.Nodes
	case slices.Contains(b.Strategies, backend.Devices):
		return p.PerNode
	}
	return 1
}

// powersOfTwo returns the sizes over which a model of unknown architecture is assumed to
// be divisible.
func powersOfTwo(most int) []int {
	var out []int
	for n := 1; n <= most; n *= 2 {
		out = append(out, n)
	}
	return out
}

// layouts returns the ways to divide the model, the best first: tensor parallelism on
// one node, then pipeline stages on one node, which are slower, then several whole
// nodes. Within each of these, the fewest devices come first, then the fewest stages.
func layouts(m *estimate.Model, b *backend.Backend, form estimate.Form, p Pool) ([]estimate.Form, error) {
	most := maxDevices(b, p)
	layers, tensors := max(1, form.Pipeline), powersOfTwo(min(p.PerNode, most))
	if m.Architecture != nil {
		layers, tensors = m.Architecture.Layers, b.Sizes(m, min(p.PerNode, most))
	}
	if form.Tensor > 0 {
		tensors = []int{form.Tensor}
	}
	var out []estimate.Form
	for _, t := range tensors {
		for n := 1; n <= layers && t*n <= most; n++ {
			if form.Pipeline > 0 && n != form.Pipeline {
				continue
			}
			if given := form.Tensor > 0 && form.Pipeline > 0; !given && t*n > p.PerNode && t*n%p.PerNode != 0 {
				continue
			}
			f := form
			f.Tensor, f.Pipeline = t, n
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("model %s has %d layers, and %s can use %d of these devices together; tensor parallelism %d × %d stages is too much",
			m.Name, layers, b.Name, most, max(1, form.Tensor), max(1, form.Pipeline))
	}
	if err := b.Divides(m, max(1, form.Tensor)); err != nil {
		return nil, err
	}
	order := func(f estimate.Form) int {
		switch {
		case f.Tensor*f.Pipeline > p.PerNode:
			return 2
		case f.Pipeline > 1:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b estimate.Form) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.Tensor*a.Pipeline, b.Tensor*b.Pipeline), cmp.Compare(a.Pipeline, b.Pipeline))
	})
	return out, nil
}
