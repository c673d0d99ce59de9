package estimate

import (
	"fmt"
	"math"

	"github.com/berth-project/berth/cluster"
)

// maxBytes is an exbibyte: an estimate beyond it is refused, so that sums of
// estimates never overflow.
const maxBytes = cluster.Bytes(1 << 60)

// Device is what one device needs to serve the model in this form: the fullest of
// all. An architecture that is not known is an error; Crude is for those who accept
// a figure all the same.
func (m *Model) Device(f Form) (Breakdown, error) {
	f, err := m.settle(f)
	if err != nil {
		return Breakdown{}, err
	}
	a := m.Architecture
	b := Breakdown{
		Weights:     m.weightsOn(f),
		KVCache:     times(a.kept(f, f.Context), int64(f.Sequences)),
		Activations: m.activations(f),
		Graph:       f.Graph,
		Overhead:    f.Overhead,
	}
	if sum(b.Weights, b.KVCache, b.Activations, b.Graph, b.Overhead) > maxBytes {
		return Breakdown{}, fmt.Errorf("model %s with %d sequences of %d tokens needs more than %d bytes of a device: ask for less", m.Name, f.Sequences, f.Context, int64(maxBytes))
	}
	return b, nil
}

// Crude is the figure that knows nothing but the weights: 1.2 times as much, and
// 2 GiB. It is for all devices together, and too little for long contexts.
func (m *Model) Crude() (cluster.Bytes, error) {
	total := m.Weights.Total()
	if total <= 0 || total > maxBytes/2 {
		return 0, m.noWeights()
	}
	return cluster.Bytes(cluster.MulDivUp(int64(total), 12, 10)) + 2<<30, nil
}

// Even is what each of so many devices takes of a model of which no more than a
// total is known: the crude figure, divided evenly. A table says the total itself.
func (m *Model) Even(devices int) (Breakdown, error) {
	n, weights := cluster.Bytes(devices), m.Weights.Total()
	all := weights
	if m.Format != "table" {
		var err error
		if all, err = m.Crude(); err != nil {
			return Breakdown{}, err
		}
	}
	each := (all + n - 1) / n
	return Breakdown{Weights: weights / n, Overhead: each - weights/n}, nil
}

func (m *Model) noWeights() error {
	return fmt.Errorf("the weights of model %s are not known: give its memory in figures", m.Name)
}

// settle puts in what the form leaves open, and refuses what cannot be.
func (m *Model) settle(f Form) (Form, error) {
	a := m.Architecture
	switch {
	case m.Weights.Total() <= 0:
		return f, m.noWeights()
	case a == nil:
		return f, fmt.Errorf("the architecture of model %s is not known: give its memory in figures, or accept the crude estimate", m.Name)
	case a.Layers < 1 || a.Hidden < 1 || a.Heads < 1 || a.KVHeads < 1 || a.HeadDim < 1 || a.Vocab < 1:
		return f, fmt.Errorf("of model %s the layers (%d), hidden size (%d), heads (%d), key heads (%d), head size (%d) or vocabulary (%d) are not known", m.Name, a.Layers, a.Hidden, a.Heads, a.KVHeads, a.HeadDim, a.Vocab)
	case a.Windows != nil && len(a.Windows) != a.cached():
		return f, fmt.Errorf("model %s has windows of %d layers, but %d keep a cache", m.Name, len(a.Windows), a.cached())
	}
	f.Tensor, f.Pipeline, f.Sequences = orElse(f.Tensor, 1), orElse(f.Pipeline, 1), orElse(f.Sequences, 1)
	f.BatchTokens, f.KVBits, f.Context = orElse(f.BatchTokens, 2048), orElse(f.KVBits, 16), orElse(f.Context, a.MaxContext)
	switch {
	case f.Context == 0:
		return f, fmt.Errorf("how many tokens model %s can take is not known: give a context", m.Name)
	case f.Tensor < 0 || f.Pipeline < 0 || f.Sequences < 0 || f.BatchTokens < 0 || f.Context < 0 || f.VocabMultiple < 0 || f.Rows < 0 || f.WindowFloor < 0 || f.Graph < 0 || f.Overhead < 0:
		return f, fmt.Errorf("a form of model %s has a negative number: %+v", m.Name, f)
	case f.KVBits != 4 && f.KVBits != 8 && f.KVBits != 16 && f.KVBits != 32:
		return f, fmt.Errorf("a cached number of %d bits is not known: 4, 8, 16 and 32 are", f.KVBits)
	case f.Pipeline > a.Layers:
		return f, fmt.Errorf("the %d layers of model %s do not make %d stages", a.Layers, m.Name, f.Pipeline)
	}
	return f, m.Splits(f)
}

// weightsOn are the weights on the fullest device. What tensor parallelism divides
// is divided evenly; of key heads every device has at least one.
func (m *Model) weightsOn(f Form) cluster.Bytes {
	a, w, t := m.Architecture, m.Weights, int64(f.Tensor)
	stage := int64(a.stage(f))
	layers := cluster.MulDivUp(cluster.MulDivUp(int64(w.Layers), stage, int64(a.Layers)), 1, t)
	ends := w.Embedding + w.Head
	if f.Pipeline > 1 {
		ends = max(w.Embedding, w.Head)
	}
	out := sum(cluster.Bytes(layers), cluster.Bytes(cluster.MulDivUp(int64(ends), 1, t)), w.Replicated)
	if copies := int64(a.keyHeads(f))*t - int64(a.KVHeads); copies > 0 && a.Latent == nil {
		numbers := product(stage, copies, int64(a.HeadDim+a.valueDim()), int64(a.Hidden))
		out = sum(out, cluster.Bytes(cluster.MulDivUp(numbers, int64(orElse(w.Bits, 1600)), 800*t)))
	}
	return out
}

// stage is how many layers the longest stage of the pipeline has.
func (a *Architecture) stage(f Form) int { return (a.Layers + f.Pipeline - 1) / f.Pipeline }

// keyHeads is how many key heads one device has.
func (a *Architecture) keyHeads(f Form) int { return (a.KVHeads + f.Tensor - 1) / f.Tensor }

func (a *Architecture) valueDim() int { return orElse(a.ValueDim, a.HeadDim) }

func (a *Architecture) cached() int { return orElse(a.Cached, a.Layers) }

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// times, product and sum stop at the largest number instead of overflowing.
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
