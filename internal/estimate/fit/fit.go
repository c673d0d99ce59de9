// Package fit finds the fewest devices of one kind that hold a model, and how it
// is divided over them. It looks at one kind of device, all of it free; where a
// model really goes is decided by the engine.
package fit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// Pool is devices of one kind: so many a node, on so many nodes.
type Pool struct {
	Memory         cluster.Bytes // of one device
	Reserved       cluster.Bytes // of it, for others
	PerNode, Nodes int
}

// Fit is how a model lies on a pool, or nearly does.
type Fit struct {
	Fits             bool
	Devices          int
	Tensor, Pipeline int
	// Layers are those of one device where a model is divided layer by layer; 0: it is not.
	Layers int
	Use    estimate.Breakdown // of the fullest device
	Usable cluster.Bytes      // of each device by the backend, less what lies beside the model
	// Claim is what the backend takes of each device for it.
	Claim backend.Claim
	// Context is the largest that fits so; 0: none does, or it does not matter.
	Context int
}

// Terms are what a manifest may say beyond the form.
type Terms struct {
	Share cluster.Milli // of each device that is claimed; 0: the backend's own
	// Beside is what else lies on each device at a tensor parallelism, such as a
	// draft; nil: nothing.
	Beside func(tensor int) (cluster.Bytes, error)
}

// On is Under without terms.
func On(m *estimate.Model, b *backend.Backend, form estimate.Form, p Pool) (Fit, error) {
	return Under(Terms{}, m, b, form, p)
}

// Under finds the fewest devices that hold the form. Sizes that the form gives are
// kept. Where nothing holds it, the Fit is the one that comes nearest, with the
// largest context that it would hold.
func Under(t Terms, m *estimate.Model, b *backend.Backend, form estimate.Form, p Pool) (Fit, error) {
	form = b.Form(form)
	switch {
	case m.Layered != nil && slices.Contains(b.Strategies, backend.Offload):
		beside, err := t.beside(1)
		if err != nil {
			return Fit{}, err
		}
		return layered(m, form, devices(b, p), max(0, p.Memory-p.Reserved-beside))
	}
	shapes, err := shapes(m, b, form, p)
	if err != nil {
		return Fit{}, err
	}
	var near Fit
	for _, s := range shapes {
		f, err := t.shape(m, b, s, p)
		if err != nil {
			return Fit{}, err
		}
		if f.Fits {
			return f, nil
		}
		// Of those that do not fit the one with the longest context, then the smaller.
		if near.Devices == 0 || f.Context > near.Context || f.Context == near.Context && f.Context == 0 && f.Use.Total()-f.Usable < near.Use.Total()-near.Usable {
			near = f
		}
	}
	return near, nil
}

func (t Terms) shape(m *estimate.Model, b *backend.Backend, form estimate.Form, p Pool) (Fit, error) {
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

// claim is what the backend takes of a device for the model and what lies beside it.
func (t Terms) claim(b *backend.Backend, tensor int, use estimate.Breakdown, beside cluster.Bytes) backend.Claim {
	return b.Claim(t.Share, tensor, use.Total()+beside, use.Activations+use.Graph+use.Overhead)
}

func (t Terms) beside(tensor int) (cluster.Bytes, error) {
	if t.Beside == nil {
		return 0, nil
	}
	return t.Beside(tensor)
}

// devices are those of the pool that the backend can use together.
func devices(b *backend.Backend, p Pool) int {
	switch {
	case slices.Contains(b.Strategies, backend.Nodes):
		return p.PerNode * p.Nodes
	case slices.Contains(b.Strategies, backend.Devices):
		return p.PerNode
	}
	return 1
}

// powers are the sizes that an unknown architecture is taken to divide over.
func powers(most int) []int {
	var out []int
	for n := 1; n <= most; n *= 2 {
		out = append(out, n)
	}
	return out
}

// shapes are the ways to divide the model, best first: tensor parallelism alone
// on one node, then with stages on one node, which are slower, then on several
// nodes, whole ones. Of each the fewest devices first, then the fewest stages.
func shapes(m *estimate.Model, b *backend.Backend, form estimate.Form, p Pool) ([]estimate.Form, error) {
	most := devices(b, p)
	layers, tensors := max(1, form.Pipeline), powers(min(p.PerNode, most))
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
		return nil, fmt.Errorf("model %s has %d layers, and %s can use %d of these devices together: tensor parallelism %d × %d stages do not fit on them",
			m.Name, layers, b.Name, most, max(1, form.Tensor), max(1, form.Pipeline))
	}
	if err := b.Divides(m, max(1, form.Tensor)); err != nil {
		return nil, err
	}
	way := func(f estimate.Form) int {
		switch {
		case f.Tensor*f.Pipeline > p.PerNode:
			return 2
		case f.Pipeline > 1:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b estimate.Form) int {
		return cmp.Or(cmp.Compare(way(a), way(b)), cmp.Compare(a.Tensor*a.Pipeline, b.Tensor*b.Pipeline), cmp.Compare(a.Pipeline, b.Pipeline))
	})
	return out, nil
}
