// Package fit finds the fewest devices of one product that hold a model, and how the
// model is divided over them. It assumes that all devices are free. The engine decides
// where a model is placed.
package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// Pool is devices of one product, with the same number of devices on each node.
type Pool struct {
	backend.Accelerator               // one device
	Reserved            cluster.Bytes // of one device, for other uses
	PerNode, Nodes      int
}

// Fit is how a model is divided over a pool. If Fits is false, it is the division that
// comes closest.
type Fit struct {
	Fits             bool
	Devices          int // of all data-parallel ranks together
	Tensor, Pipeline int
	Data             int // the number of data-parallel ranks; 0: 1
	// Layers is the number of layers on one device if the model is divided layer by layer;
	// 0: it is not.
	Layers int
	Use    estimate.Breakdown // of the device that needs most
	Usable cluster.Bytes      // how much of each device the model may use, without Extra
	Extra  cluster.Bytes      // how much of each device the draft and the adapters take
	// Pool is how much of each device the KV cache can take, and Full the serving parameters
	// with the backend's defaults; zero if the model is divided layer by layer.
	Pool cluster.Bytes
	Full estimate.Serving
	// Claim is what the backend claims of each device; zero if the model is divided layer by
	// layer.
	Claim backend.Claim
	// Context is the largest context that fits; 0: none fits, or the memory that the model
	// needs does not depend on the context.
	Context int
}

// Sequences returns how many sequences of the context the pools of all ranks hold at once, in
// hundredths, if a number in the cache has this many bits. It returns 0 if the model keeps no
// cache.
func (f Fit) Sequences(m *estimate.Model, bits int) (int, error) {
	if m.Architecture == nil || f.Full.Tensor == 0 {
		return 0, nil
	}
	s := f.Full
	if bits > 0 {
		s.KVBits = bits
	}
	context := s.Context
	if context == 0 {
		context = m.Architecture.MaxContext
	}
	each, err := m.KVAt(s, context)
	if err != nil || each <= 0 {
		return 0, err
	}
	return int(min(cluster.MulDiv(int64(f.Pool), 100*int64(max(1, f.Data)), int64(each)), math.MaxInt32)), nil
}

// Options are the parameters of a manifest that FewestDevicesWith uses in addition to the
// serving parameters.
type Options struct {
	Share cluster.Milli // the share of each device that is claimed; 0: the backend's default
	// Extra returns how much memory of each device of a kind is taken by others than the
	// model, such as a draft model, at a tensor parallelism; nil: none.
	Extra func(tensor int, d backend.Accelerator) (estimate.Breakdown, error)
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
	if m.Layered != nil && slices.Contains(b.Strategies, backend.Offload) {
		extra, err := o.extra(1, p.Accelerator)
		if err != nil {
			return Fit{}, err
		}
		f, err := fitLayers(m, b.WithDefaults(m, serving, p.Accelerator), maxDevices(b, p), max(0, p.Memory-p.Reserved-p.Unusable-extra.Total()))
		f.Extra = extra.Total()
		return f, err
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
	extra, err := o.extra(serving.Tensor, p.Accelerator)
	if err != nil {
		return Fit{}, err
	}
	f := Fit{Devices: devicesOf(serving), Tensor: serving.Tensor, Pipeline: serving.Pipeline, Data: serving.Data}
	full := b.WithDefaults(m, serving, p.Accelerator)
	claim := func(use estimate.Breakdown) backend.Claim {
		dynamic := extra.Activations
		if m.Architecture != nil {
			dynamic += use.Activations + use.Graph + use.Overhead
		}
		return b.Claim(o.Share, m, serving, p.Accelerator, use.Total()+extra.Total(), dynamic)
	}
	if m.Architecture == nil {
		f.Use, err = m.PerDeviceEvenly(serving.Tensor * serving.Pipeline)
	} else {
		f.Use, err = m.PerDevice(full)
	}
	if err != nil {
		return Fit{}, err
	}
	f.Claim = claim(f.Use)
	claimed := f.Claim.BytesOf(p.Memory, p.Reserved)
	f.Fits = claimed >= f.Claim.Enough
	usable := claimed - f.Claim.Unusable
	if f.Claim.Share == 0 && p.Memory > 0 {
		usable = cluster.Bytes(cluster.MulDiv(int64(claimed), int64(p.Memory-p.Unusable), int64(p.Memory)))
	}
	f.Extra, f.Usable = extra.Total(), max(0, usable-extra.Total())
	f.Full, f.Pool = full, f.Use.KVCache
	if f.Claim.Share > 0 {
		// A server fills its share with the cache.
		f.Pool = max(0, f.Usable-(f.Use.Total()-f.Use.KVCache))
		if f.Claim.Fraction > 0 {
			f.Pool = max(0, f.Claim.StaticBytes(claimed)-f.Claim.Static+f.Use.KVCache)
		}
	}
	if m.Architecture != nil {
		f.Context, err = m.LargestContextWhere(full, func(use estimate.Breakdown) bool { return claimed >= claim(use).Enough })
	}
	return f, err
}

func (o Options) extra(tensor int, d backend.Accelerator) (estimate.Breakdown, error) {
	if o.Extra == nil {
		return estimate.Breakdown{}, nil
	}
	return o.Extra(tensor, d)
}

// devicesOf returns how many devices all data-parallel ranks take together.
func devicesOf(s estimate.Serving) int { return s.Tensor * s.Pipeline * max(1, s.Data) }

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
// Each data-parallel rank is on one node. Ranks on several nodes have no stages, unless serving
// sets them.
func layouts(m *estimate.Model, b *backend.Backend, serving estimate.Serving, p Pool) ([]estimate.Serving, error) {
	ranks, most := max(1, serving.Data), maxDevices(b, p)
	layers, tensors := max(1, serving.Pipeline), powersOfTwo(min(p.PerNode, most/ranks))
	if m.Architecture != nil {
		layers, tensors = m.Architecture.Layers, b.TensorSizes(m, min(p.PerNode, most/ranks))
	}
	if !slices.Contains(b.Strategies, backend.Nodes) {
		layers = max(1, serving.Pipeline) // it has no pipeline stages
	}
	if serving.Tensor > 0 {
		tensors = []int{serving.Tensor}
	}
	var out []estimate.Serving
	for _, t := range tensors {
		for n := 1; n <= layers && t*n*ranks <= most; n++ {
			f := serving
			f.Tensor, f.Pipeline = t, n
			if (serving.Pipeline == 0 || n == serving.Pipeline) && p.holds(f, serving) {
				out = append(out, f)
			}
		}
	}
	if err := b.CheckTensor(m, max(1, serving.Tensor)); err != nil && len(out) > 0 {
		return nil, err
	}
	out, err := withExperts(m, b, out)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		text := fmt.Sprintf("tensor parallelism %d × %d stages", max(1, serving.Tensor), max(1, serving.Pipeline))
		if ranks > 1 {
			text += fmt.Sprintf(" × %d data-parallel ranks", ranks)
		}
		return nil, fmt.Errorf("model %s has %d layers, and %s can use %d of these devices together; %s is too much", m.Name, layers, b.Name, most, text)
	}
	order := func(f estimate.Serving) int {
		switch {
		case devicesOf(f) > p.PerNode:
			return 2
		case f.Pipeline > 1:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b estimate.Serving) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(devicesOf(a), devicesOf(b)), cmp.Compare(a.Pipeline, b.Pipeline))
	})
	return out, nil
}

// holds reports whether the pool has the nodes for the layout f. given is the parallelism that
// is set.
func (p Pool) holds(f, given estimate.Serving) bool {
	rank := f.Tensor * f.Pipeline
	switch {
	case devicesOf(f) <= p.PerNode:
		return f.Pipeline == 1 || given.Tensor == 0 || given.Pipeline > 0 // with a tensor parallelism alone, a node has one stage
	case f.Data > 1:
		return rank <= p.PerNode && p.PerNode/rank*p.Nodes >= f.Data && (f.Pipeline == 1 || given.Pipeline > 0)
	case given.Tensor > 0 && given.Pipeline > 0:
		return true
	}
	return rank%p.PerNode == 0
}

// withExperts returns the layouts over which the experts can be divided. If there is none, it
// returns an error.
func withExperts(m *estimate.Model, b *backend.Backend, layouts []estimate.Serving) ([]estimate.Serving, error) {
	if m.Architecture == nil {
		return layouts, nil
	}
	var out []estimate.Serving
	var first error
	for _, f := range layouts {
		err := m.CheckExperts(b.WithExperts(f))
		if err == nil {
			out = append(out, f)
		} else if first == nil {
			first = err
		}
	}
	if len(out) > 0 {
		first = nil
	}
	return out, first
}
