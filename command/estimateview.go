package command

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/fit"
	"github.com/berth-project/berth/internal/quantity"
)

// estimateView is what estimate prints as JSON. Memory is in bytes.
type estimateView struct {
	Name         string        `json:"name,omitempty"` // the name in the manifest
	Model        string        `json:"model"`
	Format       string        `json:"format"`
	Parameters   int64         `json:"parameters,omitempty"`
	Weights      cluster.Bytes `json:"weights"`
	Quantised    string        `json:"quantised,omitempty"`
	Architecture string        `json:"architecture,omitempty"`
	MaxContext   int           `json:"maxContext,omitempty"`
	Backend      string        `json:"backend"`
	Context      int           `json:"context,omitempty"`
	Sequences    int           `json:"sequences"`
	KVBits       int           `json:"kvBits"`
	// PerToken is what one token adds to the KV cache if it counts in every layer.
	// PerLateToken is what it adds when all attention windows are full.
	PerToken     cluster.Bytes `json:"bytesPerToken,omitempty"`
	PerLateToken cluster.Bytes `json:"bytesPerTokenBeyondWindows,omitempty"`
	Device       breakdownView `json:"oneDevice"`
	Host         cluster.Bytes `json:"nodeMemory"`
	Devices      []estimateRow `json:"devices"`
	Assumed      []string      `json:"assumed,omitempty"`

	// The rows are computed from these.
	model   *estimate.Model
	backend *backend.Backend
	form    estimate.Serving
	version string // of the backend
	oneNode bool   // a replica is not divided over several nodes
	terms   fit.Options
	loaded  cluster.Bytes // weights of the draft and of adapters
}

type breakdownView struct {
	Weights     cluster.Bytes `json:"weights"`
	KVCache     cluster.Bytes `json:"kvCache"`
	Activations cluster.Bytes `json:"activations"`
	Graph       cluster.Bytes `json:"graph"`
	Overhead    cluster.Bytes `json:"overhead"`
	Beside      cluster.Bytes `json:"draftAndAdapters,omitempty"`
	Total       cluster.Bytes `json:"total"`
}

// division is how a model is divided over devices.
type division struct {
	Devices  int `json:"devices,omitempty"`
	Tensor   int `json:"tensorParallel,omitempty"`
	Pipeline int `json:"pipelineParallel,omitempty"`
	Data     int `json:"dataParallel,omitempty"`
	Layers   int `json:"layersEach,omitempty"`
}

type estimateRow struct {
	Product string        `json:"product"`
	Memory  cluster.Bytes `json:"memory"`
	Fits    bool          `json:"fits"`
	division
	Used    cluster.Bytes `json:"used,omitempty"`
	Usable  cluster.Bytes `json:"usable,omitempty"`
	Largest int           `json:"largestContext,omitempty"`
	Why     string        `json:"why,omitempty"`
	Group   *groupRow     `json:"group,omitempty"`
	// Each is the parts of Used. Cache and NarrowCache are what the KV cache holds, with its
	// own numbers and with numbers of 8 bits; nil if that is not known.
	Each        *breakdownView `json:"each,omitempty"`
	Cache       *poolView      `json:"cache,omitempty"`
	NarrowCache *poolView      `json:"cacheOf8Bits,omitempty"`
}

// fitsOnNode reports whether the model fits on devices of one node.
func (r estimateRow) fitsOnNode() bool {
	perNode := defaultPerNode
	if r.Group != nil {
		perNode = r.Group.Devices
	}
	return r.Fits && r.Devices <= perNode
}

// poolView is what the KV cache of a replica holds.
type poolView struct {
	Bytes     cluster.Bytes `json:"bytes"`     // of each device
	Tokens    int           `json:"tokens"`    // of all sequences together
	Sequences float64       `json:"sequences"` // of the given context, at once
}

// groupRow is the part of a row that only a node group of a cluster has.
type groupRow struct {
	Devices    int    `json:"devicesPerNode"`
	Nodes      int    `json:"nodes"`
	PerReplica int    `json:"nodesPerReplica,omitempty"`
	Why        string `json:"why,omitempty"`
}

func newEstimateView(m *estimate.Model, b *backend.Backend, f estimate.Serving, t fit.Options) (*estimateView, error) {
	v := &estimateView{
		Model: m.Name, Format: m.Format, Parameters: m.Weights.Parameters, Weights: m.Weights.Total(), Quantised: m.Weights.Quantised,
		Backend: b.Name, Context: f.Context, Sequences: max(1, f.Sequences), KVBits: cmp.Or(f.KVBits, 16), Host: b.Host, Assumed: m.Assumptions(isLayered(m, b)),
		model: m, backend: b, form: f, terms: t,
	}
	if a := m.Architecture; a != nil {
		v.Architecture, v.MaxContext = a.Name, a.MaxContext
		if v.Context == 0 {
			v.Context = a.MaxContext
		}
		if a.MaxContext > 0 && f.Context > a.MaxContext {
			return nil, fmt.Errorf("a context of %d is more than the maximum of %s, which is %d", f.Context, m.Name, a.MaxContext)
		}
		whole := f
		whole.Tensor, whole.Pipeline = 1, 1
		whole = b.WithDefaults(m, whole, backend.Accelerator{})
		v.KVBits = cmp.Or(whole.KVBits, 16)
		per, err := m.KVPerToken(whole)
		if err != nil {
			return nil, err
		}
		v.PerToken = per
		if v.PerLateToken, err = kvPerLateToken(m, whole); err != nil {
			return nil, err
		}
	}
	one := f
	one.Tensor, one.Pipeline = 1, 1
	u, err := needOfOne(m, b, one)
	if err != nil {
		return nil, err
	}
	beside := cluster.Bytes(0)
	if t.Extra != nil {
		more, err := t.Extra(1, backend.Accelerator{})
		if err != nil {
			return nil, err
		}
		beside = more.Total()
	}
	v.Device = breakdownView{u.Weights, u.KVCache, u.Activations, u.Graph, u.Overhead, beside, u.Total() + beside}
	if isLayered(m, b) {
		need, err := m.Layered.Need(b.WithDefaults(m, one, backend.Accelerator{}))
		if err != nil {
			return nil, err
		}
		v.Host = need.Host
	} else if m.IsCrude() {
		v.assume(estimate.CrudeAssumption)
	}
	return v, nil
}

// needOfOne returns what a model needs of a single device that holds all of it, and of which
// nothing else is known.
func needOfOne(m *estimate.Model, b *backend.Backend, f estimate.Serving) (estimate.Breakdown, error) {
	f = b.WithDefaults(m, f, backend.Accelerator{})
	switch {
	case isLayered(m, b):
		need, err := m.Layered.Need(f)
		return need.Whole, err
	case m.Architecture == nil:
		return m.PerDeviceEvenly(1)
	}
	return m.PerDevice(f)
}

// isLayered reports whether the backend distributes the model layer by layer.
func isLayered(m *estimate.Model, b *backend.Backend) bool {
	return m.Layered != nil && slices.Contains(b.Strategies, backend.Offload)
}

// assume adds a sentence to the assumptions. The list is copied, because other
// views share the list of the model.
func (v *estimateView) assume(text string) {
	v.Assumed = append(slices.Clone(v.Assumed), text)
}

// kvPerLateToken returns what the last token of the longest context adds to the KV
// cache. It returns 0 if no layer has an attention window, or if no window is ever
// full.
func kvPerLateToken(m *estimate.Model, f estimate.Serving) (cluster.Bytes, error) {
	last := m.Architecture.MaxContext
	if !m.Architecture.HasWindows() || last < 2 || f.WindowFloor > 0 {
		return 0, nil
	}
	before, err := m.KVAt(f, last-1)
	if err != nil {
		return 0, err
	}
	after, err := m.KVAt(f, last)
	return after - before, err
}

func divisionOf(f fit.Fit) division {
	out := division{Devices: f.Devices, Tensor: f.Tensor, Pipeline: f.Pipeline, Layers: f.Layers}
	if f.Data > 1 {
		out.Data = f.Data
	}
	return out
}

// add appends the row of one kind of device.
func (v *estimateView) add(product string, p fit.Pool) error {
	if v.oneNode {
		p.Nodes = 1
	}
	f, err := fit.FewestDevicesWith(v.terms, v.model, v.backend, v.form, p)
	if err != nil {
		return err
	}
	r := estimateRow{
		Product: product, Memory: p.Memory, Fits: f.Fits, division: divisionOf(f), Used: f.Use.Total(), Usable: f.Usable, Largest: f.Context,
	}
	if !f.Fits {
		r.Why = v.shortage(f, p)
	}
	r.Each = &breakdownView{f.Use.Weights, f.Use.KVCache, f.Use.Activations, f.Use.Graph, f.Use.Overhead, f.Extra, f.Use.Total() + f.Extra}
	if r.Cache, err = v.pool(f, 0); err != nil {
		return err
	}
	if allowed := v.backend.CacheBits; v.KVBits > 8 && (len(allowed) == 0 || slices.Contains(allowed, 8)) {
		if r.NarrowCache, err = v.pool(f, 8); err != nil {
			return err
		}
		if r.Cache != nil && r.NarrowCache.Tokens == r.Cache.Tokens { // its size is fixed
			r.NarrowCache = nil
		}
	}
	v.Devices = append(v.Devices, r)
	return nil
}

// pool returns what the KV cache holds if its numbers have this many bits; nil if the model
// does not fit or keeps no cache.
func (v *estimateView) pool(f fit.Fit, bits int) (*poolView, error) {
	n, err := f.Sequences(v.model, bits)
	if err != nil || n == 0 || !f.Fits {
		return nil, err
	}
	tokens := cluster.MulDiv(int64(v.Context), int64(n), 100)
	return &poolView{f.Pool, int(min(tokens, math.MaxInt32)), float64(n) / 100}, nil
}

// shortage returns a sentence that says which memory is missing on each device.
func (v *estimateView) shortage(f fit.Fit, p fit.Pool) string {
	c, claimed := f.Claim, f.Claim.BytesOf(p.Memory, p.Reserved)
	within := c.StaticBytes(claimed)
	switch {
	case c.Fraction == 0:
		need, has := quantity.MemoryPair(f.Use.Total(), f.Usable)
		return fmt.Sprintf("%s the model needs %s, and %s can use %s", divisionOf(f).onEachDevice(), need, v.Backend, has)
	case c.Static > within:
		need, has := quantity.MemoryPair(c.Static, within)
		return fmt.Sprintf("%s weights and KV cache take %s, and %s allots %s to them", divisionOf(f).onEachDevice(), need, v.Backend, has)
	}
	need, has := quantity.MemoryPair(f.Use.Activations+f.Use.Graph+f.Use.Overhead, claimed-within)
	return fmt.Sprintf("%s activations, graphs and overhead take %s, and %s leaves %s for them", divisionOf(f).onEachDevice(), need, v.Backend, has)
}
