package estimate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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
	b := m.breakdown(s)
	if !b.isPlausible() {
		return Breakdown{}, m.errTooMuch(s)
	}
	return b, nil
}

// breakdown is PerDevice for normalized parameters. The result may exceed maxBytes.
func (m *Model) breakdown(s Serving) Breakdown {
	b := Breakdown{
		Weights:     m.weightsPerDevice(s) - m.expertSaving(s),
		KVCache:     times(m.Architecture.cacheBytes(s, s.Context), int64(s.Sequences)),
		Activations: m.activations(s),
		Graph:       s.Graph,
		Overhead:    s.Overhead,
	}
	b.Overhead = sum(b.Overhead, b.Weights/rounding)
	if least := m.leastBytes(s); b.isPlausible() && b.Total() < least {
		b.Overhead += least - b.Total()
	}
	return b
}

// isPlausible reports whether the sum of all parts is at most maxBytes.
func (b Breakdown) isPlausible() bool {
	return sum(b.Weights, b.KVCache, b.Activations, b.Graph, b.Overhead) <= maxBytes
}

// leastBytes returns how much memory the model needs of a device even if the sum of all parts is
// less: while it is loaded and, if it is not known what its layers keep, the crude figure.
func (m *Model) leastBytes(s Serving) cluster.Bytes {
	least := cluster.Bytes(0)
	if s.PlainLoad && s.WeightBits == 8 {
		s.WeightBits = 16
		weights := m.weightsPerDevice(s) - m.expertSaving(s)
		least = sum(weights, weights/rounding, s.Overhead)
	}
	if m.Architecture.Bound != nil {
		crude, err := m.CrudeTotal()
		if err != nil {
			return maxBytes + 1
		}
		least = max(least, cluster.Bytes(cluster.MulDivUp(int64(crude), 1, product(int64(s.Tensor), int64(s.Pipeline)))))
	}
	return least
}

// errTooMuch says that the model needs more than maxBytes, and what to change.
func (m *Model) errTooMuch(s Serving) error {
	sequences := fmt.Sprintf("%d sequences", s.Sequences)
	if s.Sequences == 1 {
		sequences = "1 sequence"
	}
	cure := "set a shorter context or fewer sequences"
	one := s
	one.Context, one.Sequences = 1, 1
	if !m.breakdown(one).isPlausible() {
		cure = "even 1 token does, so check the sizes of the model, and the serving parameters"
	}
	return fmt.Errorf("model %s with %s of %d tokens needs more than 1 EiB of a device; %s", m.Name, sequences, s.Context, cure)
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
// which only the size of the weights is known. It divides the result of CrudeTotal evenly or, for
// a model of a table, the table's own figure.
func (m *Model) PerDeviceEvenly(devices int) (Breakdown, error) {
	n, weights := cluster.Bytes(devices), m.Weights.Total()
	all := weights
	if m.IsCrude() {
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
	if name, n := negative(a, &s); n < 0 {
		return s, fmt.Errorf("model %s: %s is %d; it must not be negative", m.Name, name, n)
	}
	s.Tensor, s.Pipeline, s.Sequences = cmp.Or(s.Tensor, 1), cmp.Or(s.Pipeline, 1), cmp.Or(s.Sequences, 1)
	s.BatchTokens, s.KVBits, s.Context = cmp.Or(s.BatchTokens, 2048), cmp.Or(s.KVBits, 16), cmp.Or(s.Context, a.MaxContext)
	if s.Context <= s.Prompt {
		s.BatchTokens = max(s.BatchTokens, s.Context)
	}
	switch {
	case s.Context == 0:
		return s, fmt.Errorf("the longest context of model %s is not known; set a context", m.Name)
	case s.WeightBits != 0 && s.WeightBits != 4 && s.WeightBits != 8 && s.WeightBits != 16 && s.WeightBits != 32:
		return s, fmt.Errorf("a number of the weights cannot have %d bits; use 4, 8, 16 or 32", s.WeightBits)
	case s.KVBits != 4 && s.KVBits != 8 && s.KVBits != 16 && s.KVBits != 32:
		return s, fmt.Errorf("a number in the KV cache cannot have %d bits; use 4, 8, 16 or 32", s.KVBits)
	case s.Pipeline > a.Layers:
		return s, fmt.Errorf("the %d layers of model %s cannot be divided into %d stages", a.Layers, m.Name, s.Pipeline)
	}
	return s, m.CheckTensor(s)
}

// negative returns the name and the value of a number that must not be negative and is; 0: there
// is none.
func negative(a *Architecture, s *Serving) (name string, n int64) {
	for _, x := range []struct {
		name string
		n    int64
	}{
		{"the tensor parallelism", int64(s.Tensor)}, {"the number of pipeline stages", int64(s.Pipeline)}, {"the number of data-parallel ranks", int64(s.Data)},
		{"the context", int64(s.Context)}, {"the number of sequences", int64(s.Sequences)}, {"the number of tokens of a step", int64(s.BatchTokens)},
		{"the longest prompt of a step", int64(s.Prompt)}, {"the number of tokens of a micro-batch", int64(s.MicroBatch)},
		{"the number of rows of logits", int64(s.Rows)}, {"the size of a logit", int64(s.LogitBytes)},
		{"the floor of windows", int64(s.WindowFloor)}, {"the number of steps in windows", int64(s.WindowSteps)},
		{"the size of a page", int64(s.Page)}, {"the threshold of groups", int64(s.Groups)},
		{"the number of states", int64(s.States)}, {"the ratio of states", int64(s.StateRatio)},
		{"the multiple of the vocabulary", int64(s.VocabMultiple)}, {"the number of expanded latents", int64(s.LatentTokens)},
		{"the padding of weights", int64(s.ExtraWeights)}, {"the size of graphs", int64(s.Graph)}, {"the overhead", int64(s.Overhead)},
	} {
		if x.n < 0 {
			return x.name, x.n
		}
	}
	caches := a.Caches
	if a.Bound != nil {
		caches = append(slices.Clone(caches), *a.Bound)
	}
	for i := range caches {
		c := &caches[i]
		if least := min(int64(c.Layer), int64(c.Heads), int64(c.Key), int64(c.Value), int64(c.Whole), int64(c.Bytes), int64(c.Window), int64(c.Stride), int64(c.Tokens), int64(c.State)); least < 0 {
			return fmt.Sprintf("a size of the cache of layer %d", c.Layer), least
		}
	}
	return "", 0
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
		out = sum(out, cluster.Bytes(cluster.MulDivUp(numbers, int64(cmp.Or(w.Bits, 1600)), 800*t)))
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
func (a *Architecture) valueDim() int { return cmp.Or(a.ValueDim, a.HeadDim) }

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
