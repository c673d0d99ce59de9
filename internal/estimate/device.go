package estimate

import (
	"fmt"
	"math"

	"github.com/berth-project/berth/cluster"
)

// maxBytes is one exbibyte. A larger estimate is an error, so sums of estimates never
// overflow.
const maxBytes = cluster.Bytes(1 << 60)

// PerDevice returns how much memory serving the model needs of one device: of the device
// that needs most. It returns an error if the architecture is not known; CrudeTotal gives
// a figure in that case.
func (m *Model) PerDevice(s Serving) (Breakdown, error) {
	s, err := m.normalize(s)
	if err != nil {
		return Breakdown{}, err
	}
	a := m.Architecture
	b := Breakdown{
		Weights:     m.weightsPerDevice(s),
		KVCache:     times(a.cacheBytes(s, s.Context), int64(s.Sequences)),
		Activations: m.activations(s),
		Graph:       s.Graph,
		Overhead:    s.Overhead,
	}
	b.Overhead = sum(b.Overhead, b.Weights/rounding)
	if sum(b.Weights, b.KVCache, b.Activations, b.Graph, b.Overhead) > maxBytes {
		return Breakdown{}, fmt.Errorf("model %s with %d sequences of %d tokens needs more than %d bytes of a device; set a shorter context or fewer sequences", m.Name, s.Sequences, s.Context, int64(maxBytes))
	}
	return b, nil
}

// CrudeTotal returns 1.2 times the weights plus 2 GiB, for all devices together. It uses
// only the size of the weights, and is too little for long contexts.
func (m *Model) CrudeTotal() (cluster.Bytes, error) {
	total := m.Weights.Total()
	if total <= 0 || total > maxBytes/2 {
		return 0, m.errWeightsUnknown()
	}
	return cluster.Bytes(cluster.MulDivUp(int64(total), 12, 10)) + 2<<30, nil
}

// PerDeviceEvenly returns how much memory each of this many devices needs for a model of
// which only the total size is known. It divides the result of CrudeTotal evenly or, for
// a model of a table, the table's own figure.
func (m *Model) PerDeviceEvenly(devices int) (Breakdown, error) {
	n, weights := cluster.Bytes(devices), m.Weights.Total()
	all := weights
	if m.Format != "table" {
		var err error
		if all, err = m.CrudeTotal(); err != nil {
			return Breakdown{}, err
		}
	}
	each := (all + n - 1) / n
	return Breakdown{Weights: weights / n, Overhead: each - weights/n}, nil
}

func (m *Model) errWeightsUnknown() error {
	return fmt.Errorf("the weights of model %s are not known; set its memory", m.Name)
}

// normalize replaces zero values of s by their defaults. It returns an error if the
// model cannot be served with s.
func (m *Model) normalize(s Serving) (Serving, error) {
	a := m.Architecture
	switch {
	case m.Weights.Total() <= 0:
		return s, m.errWeightsUnknown()
	case a == nil:
		return s, fmt.Errorf("the architecture of model %s is not known; set its memory, or accept the crude estimate", m.Name)
	case a.Layers < 1 || a.Hidden < 1 || a.Heads < 1 || a.KVHeads < 1 || a.HeadDim < 1 || a.Vocab < 1:
		return s, fmt.Errorf("some sizes of model %s are not known: layers (%d), hidden size (%d), heads (%d), key heads (%d), head size (%d), vocabulary (%d)", m.Name, a.Layers, a.Hidden, a.Heads, a.KVHeads, a.HeadDim, a.Vocab)
	}
	s.Tensor, s.Pipeline, s.Sequences = orElse(s.Tensor, 1), orElse(s.Pipeline, 1), orElse(s.Sequences, 1)
	s.BatchTokens, s.KVBits, s.Context = orElse(s.BatchTokens, 2048), orElse(s.KVBits, 16), orElse(s.Context, a.MaxContext)
	switch {
	case s.Context == 0:
		return s, fmt.Errorf("the longest context of model %s is not known; set a context", m.Name)
	case s.Tensor < 0 || s.Pipeline < 0 || s.Sequences < 0 || s.BatchTokens < 0 || s.Context < 0 || s.VocabMultiple < 0 || s.Rows < 0 || s.LogitBytes < 0 || s.Page < 0 || s.WindowSteps < 0 || s.Groups < 0 || s.LatentTokens < 0 || s.WindowFloor < 0 || s.Graph < 0 || s.Overhead < 0:
		return s, fmt.Errorf("the serving parameters of model %s have a negative number: %+v", m.Name, s)
	case s.WeightBits != 0 && s.WeightBits != 4 && s.WeightBits != 8 && s.WeightBits != 16 && s.WeightBits != 32:
		return s, fmt.Errorf("a number of the weights cannot have %d bits; use 4, 8, 16 or 32", s.WeightBits)
	case s.KVBits != 4 && s.KVBits != 8 && s.KVBits != 16 && s.KVBits != 32:
		return s, fmt.Errorf("a number in the KV cache cannot have %d bits; use 4, 8, 16 or 32", s.KVBits)
	case s.Pipeline > a.Layers:
		return s, fmt.Errorf("the %d layers of model %s cannot be divided into %d stages", a.Layers, m.Name, s.Pipeline)
	}
	return s, m.CheckTensor(s)
}

// weightsPerDevice returns the weights on the device that holds most. Tensor parallelism
// divides weights evenly, except that every device holds at least one key head.
func (m *Model) weightsPerDevice(s Serving) cluster.Bytes {
	a, w, t := m.Architecture, m.Weights.loaded(s.WeightBits), int64(s.Tensor)
	stage := int64(a.layersPerStage(s))
	layers := cluster.MulDivUp(cluster.MulDivUp(int64(w.Layers), stage, int64(a.Layers)), 1, t)
	layers += cluster.MulDivUp(layers, int64(s.ExtraWeights), int64(cluster.Whole))
	ends := w.Embedding + w.Head
	if s.Pipeline > 1 {
		ends = max(w.Embedding, w.Head)
	}
	out := sum(cluster.Bytes(layers), cluster.Bytes(cluster.MulDivUp(int64(ends), 1, t)), w.Replicated)
	if copies := int64(a.keyHeads(s))*t - int64(a.KVHeads); copies > 0 && a.Latent == nil {
		numbers := product(stage, copies, int64(a.HeadDim+a.valueDim()), int64(a.Hidden))
		out = sum(out, cluster.Bytes(cluster.MulDivUp(numbers, int64(orElse(w.Bits, 1600)), 800*t)))
	}
	return out
}

// loaded returns the weights after a backend has converted plain numbers to this many
// bits. Only 32 bits apply to all of them: a backend that quantises weights leaves
// embedding, head and replicated weights as they are. Quantised numbers have scales, which
// take 0.5 bits of each number.
func (w Weights) loaded(bits int) Weights {
	total := int64(w.Total())
	plain := func(part cluster.Bytes) int64 { return cluster.MulDiv(int64(part), int64(w.Plain), max(1, total)) }
	scale := func(part *cluster.Bytes, hundredths int64) {
		now := plain(*part)
		*part += cluster.Bytes(cluster.MulDivUp(now, hundredths, 1600) - now)
	}
	switch bits {
	case 32:
		scale(&w.Layers, 3200)
		scale(&w.Embedding, 3200)
		scale(&w.Head, 3200)
		scale(&w.Replicated, 3200)
	case 8:
		scale(&w.Layers, 850)
	case 4:
		scale(&w.Layers, 450)
	}
	return w
}

// layersPerStage returns how many layers the longest stage of the pipeline has.
func (a *Architecture) layersPerStage(s Serving) int { return (a.Layers + s.Pipeline - 1) / s.Pipeline }

// keyHeads returns how many key heads one device holds.
func (a *Architecture) keyHeads(s Serving) int { return (a.KVHeads + s.Tensor - 1) / s.Tensor }

// valueDim returns the size of a value.
func (a *Architecture) valueDim() int { return orElse(a.ValueDim, a.HeadDim) }

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// times, product and sum return the largest number instead of overflowing.
func times(b cluster.Bytes, n int64) cluster.Bytes {
	return cluster.Bytes(cluster.MulDiv(int64(b), n, 1))
}

func product(factors ...int64) int64 {
	out := int64(1)
	for _, n := range factors {
		out = cluster.MulDiv(out, n, 1)
	}
	return out
}

func sum(parts ...cluster.Bytes) cluster.Bytes {
	var out cluster.Bytes
	for _, p := range parts {
		if p > math.MaxInt64-out {
			return math.MaxInt64
		}
		out += p
	}
	return out
}
