// Package fit finds the fewest devices of one kind that hold a model, and how it
// is divided over them. It looks at one kind of device, all of it free; where a
// model really goes is decided by the engine.
package fit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/estimate"
	"github.com/berth-project/berth/estimate/backend"
)

// Pool is devices of one kind: so many a node, on so many nodes.
type Pool struct {
	Memory         cluster.Bytes // of one device
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
		return layered(m, form, devices(b, p), max(0, p.Memory-beside))
	case m.Architecture == nil:
		return t.single(m, b, form, p)
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
	use, err := m.Device(form)
	if err != nil {
		return Fit{}, err
	}
	f := Fit{Devices: form.Tensor * form.Pipeline, Tensor: form.Tensor, Pipeline: form.Pipeline, Use: use}
	if f.Usable, err = t.usable(b, p, form.Tensor); err != nil {
		return Fit{}, err
	}
	f.Fits = use.Total() <= f.Usable
	f.Context, err = m.LargestContext(form, f.Usable)
	return f, err
}

// usable is what the backend claims of a device, less what lies beside the model.
func (t Terms) usable(b *backend.Backend, p Pool, tensor int) (cluster.Bytes, error) {
	beside, err := t.beside(tensor)
	has := p.Memory
	if share := cmp.Or(t.Share, b.Fraction(tensor)); share > 0 {
		has = cluster.Bytes(cluster.MulDiv(int64(p.Memory), int64(share), int64(cluster.Whole)))
	}
	return max(0, has-beside), err
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

// shapes are the ways to divide the model, best first: tensor parallelism alone
// on one node, then with stages on one node, which are slower, then on several
// nodes, whole ones. Of each the fewest devices first, then the fewest stages.
func shapes(m *estimate.Model, b *backend.Backend, form estimate.Form, p Pool) ([]estimate.Form, error) {
	most := devices(b, p)
	tensors := b.Sizes(m, min(p.PerNode, most))
	if form.Tensor > 0 {
		tensors = []int{form.Tensor}
	}
	var out []estimate.Form
	for _, t := range tensors {
		for n := 1; n <= m.Architecture.Layers && t*n <= most; n++ {
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
			m.Name, m.Architecture.Layers, b.Name, most, max(1, form.Tensor), max(1, form.Pipeline))
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

// single is for models of which no more than a total is known: they are not divided.
func (t Terms) single(m *estimate.Model, b *backend.Backend, form estimate.Form, p Pool) (Fit, error) {
	if form.Tensor > 1 || form.Pipeline > 1 {
		return Fit{}, fmt.Errorf("the architecture of model %s is not known, so it cannot be divided over devices", m.Name)
	}
	usable, err := t.usable(b, p, 1)
	if err != nil {
		return Fit{}, err
	}
	f := Fit{Devices: 1, Tensor: 1, Pipeline: 1, Usable: usable}
	f.Use.Weights = m.Weights.Total()
	if m.Format != "table" {
		total, err := m.Crude()
		if err != nil {
			return Fit{}, err
		}
		f.Use.Overhead = total - f.Use.Weights
	}
	f.Fits = f.Use.Total() <= f.Usable
	return f, nil
}
