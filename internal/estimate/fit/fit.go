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
	// Layers is the number of layers on one device if the model is divided layer by layer;
	// 0: it is not.
	Layers int
	Use    estimate.Breakdown // of the device that needs most
	Usable cluster.Bytes      // how much of each device the model may use, without the draft and adapters
	// Claim is what the backend claims of each device; zero if the model is divided layer by
	// layer.
	Claim backend.Claim
	// Context is the largest context that fits; 0: none fits, or the memory that the model
	// needs does not depend on the context.
	Context int
}

// Options are the parameters of a manifest that FewestDevicesWith uses in addition to the
// serving parameters.
type Options struct {
	Share cluster.Milli // the share of each device that is claimed; 0: the backend's default
	// Extra returns how much memory of each device is taken by others than the model, such
	// as a draft model, at a tensor parallelism; nil: none.
	Extra func(tensor int) (cluster.Bytes, error)
}

// FewestDevices is FewestDevicesWith without options.
func FewestDevices(m *estimate.Model, b *backend.Backend, serving estimate.Serving, p Pool) (Fit, error) {
	return FewestDevicesWith(Options{}, m, b, serving, p)
}

// FewestDevicesWith finds the fewest devices of the pool that hold the model with these
// serving parameters. A parallelism that serving sets is kept. If no number of devices holds
// the model, the result has Fits false and is the division that comes closest, with the
// largest context that it holds.
func FewestDevicesWith(o Options, m *estimate.Model, b *backend.Backend, serving estimate.Serving, p Pool) (Fit, error) {
	serving = b.WithDefaults(serving)
	switch {
	case m.Layered != nil && slices.Contains(b.Strategies, backend.Offload):
		extra, err := o.extra(1)
		if err != nil {
			return Fit{}, err
		}
		return fitLayers(m, serving, maxDevices(b, p), max(0, p.Memory-p.Reserved-extra))
	}
	layouts, err := layouts(m, b, serving, p)
	if err != nil {
		return Fit{}, err
	}
	var near Fit
	for _, s := range layouts {
		f, err := o.fitLayout(m, b, s, p)
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

func (o Options) fitLayout(m *estimate.Model, b *backend.Backend, serving estimate.Serving, p Pool) (Fit, error) {
	extra, err := o.extra(serving.Tensor)
	if err != nil {
		return Fit{}, err
	}
	f := Fit{Devices: serving.Tensor * serving.Pipeline, Tensor: serving.Tensor, Pipeline: serving.Pipeline}
	if m.Architecture == nil {
		f.Use, err = m.PerDeviceEvenly(f.Devices)
		f.Claim = b.Claim(o.Share, serving.Tensor, f.Use.Total()+extra, 0)
	} else {
		f.Use, err = m.PerDevice(serving)
		f.Claim = o.claim(b, serving.Tensor, f.Use, extra)
	}
	if err != nil {
		return Fit{}, err
	}
	claimed := f.Claim.BytesOf(p.Memory, p.Reserved)
	f.Usable = max(0, claimed-extra)
	f.Fits = claimed >= f.Claim.Enough
	if m.Architecture != nil {
		f.Context, err = m.LargestContextWhere(serving, func(use estimate.Breakdown) bool {
			return claimed >= o.claim(b, serving.Tensor, use, extra).Enough
		})
	}
	return f, err
}

// claim returns what the backend claims of a device for the model and for the draft and
// adapters.
func (o Options) claim(b *backend.Backend, tensor int, use estimate.Breakdown, extra cluster.Bytes) backend.Claim {
	return b.Claim(o.Share, tensor, use.Total()+extra, use.Activations+use.Graph+use.Overhead)
}

func (o Options) extra(tensor int) (cluster.Bytes, error) {
	if o.Extra == nil {
		return 0, nil
	}
	return o.Extra(tensor)
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

// powersOfTwo returns the powers of two up to most. A model of unknown architecture is
// assumed to be divisible over such numbers of devices.
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
func layouts(m *estimate.Model, b *backend.Backend, serving estimate.Serving, p Pool) ([]estimate.Serving, error) {
	most := maxDevices(b, p)
	layers, tensors := max(1, serving.Pipeline), powersOfTwo(min(p.PerNode, most))
	if m.Architecture != nil {
		layers, tensors = m.Architecture.Layers, b.TensorSizes(m, min(p.PerNode, most))
	}
	if serving.Tensor > 0 {
		tensors = []int{serving.Tensor}
	}
	var out []estimate.Serving
	for _, t := range tensors {
		for n := 1; n <= layers && t*n <= most; n++ {
			if serving.Pipeline > 0 && n != serving.Pipeline {
				continue
			}
			if given := serving.Tensor > 0 && serving.Pipeline > 0; !given && t*n > p.PerNode && t*n%p.PerNode != 0 {
				continue
			}
			f := serving
			f.Tensor, f.Pipeline = t, n
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("model %s has %d layers, and %s can use %d of these devices together; tensor parallelism %d × %d stages is too much",
			m.Name, layers, b.Name, most, max(1, serving.Tensor), max(1, serving.Pipeline))
	}
	if err := b.CheckTensor(m, max(1, serving.Tensor)); err != nil {
		return nil, err
	}
	order := func(f estimate.Serving) int {
		switch {
		case f.Tensor*f.Pipeline > p.PerNode:
			return 2
		case f.Pipeline > 1:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b estimate.Serving) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.Tensor*a.Pipeline, b.Tensor*b.Pipeline), cmp.Compare(a.Pipeline, b.Pipeline))
	})
	return out, nil
}
