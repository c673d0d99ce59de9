package estimate_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// If it is not known what the layers keep, every layer keeps all tokens, uncompressed, and the
// need is at least 1.2 × the weights and 2 GiB.
func TestBound(t *testing.T) {
	m := eight()
	crude, err := m.CrudeTotal()
	if err != nil {
		t.Fatal(err)
	}
	known := device(t, m, estimate.Serving{Context: 8192})
	m.Architecture.Bound = &estimate.Cache{Heads: 8, Key: 128, Value: 128}
	if b := device(t, m, estimate.Serving{Context: 1}); b.Total() != crude {
		t.Errorf("one token: %d, want the crude figure %d", b.Total(), crude)
	}
	for _, s := range []estimate.Serving{{Context: 1, Tensor: 4}, {Context: 1, Tensor: 2, Pipeline: 2}} {
		if b := device(t, m, s); b.Total() < crude/4 {
			t.Errorf("%d × %d: %d, want at least a quarter of %d", s.Tensor, s.Pipeline, b.Total(), crude)
		}
	}
	m.Architecture.Caches = m.Architecture.WithWindows(make([]int, 32))
	for i := range m.Architecture.Caches {
		m.Architecture.Caches[i].Window = 10
	}
	b := device(t, m, estimate.Serving{Context: 8192})
	if b.KVCache != known.KVCache || b.Total() < crude {
		t.Errorf("windows: %+v, want a cache of %d", b, known.KVCache)
	}
	if b := device(t, m, estimate.Serving{Context: 131072}); b.KVCache != 16*gib {
		t.Errorf("131,072 tokens: cache %d", b.KVCache)
	}
	if n, err := m.KVPerToken(estimate.Serving{}); err != nil || n != 131072 {
		t.Errorf("a token takes %d, %v", n, err)
	}
	m.Architecture.Caches[0].State = gib
	if more := device(t, m, estimate.Serving{Context: 1}); more.KVCache < gib {
		t.Errorf("a state that is known is not counted: %+v", more)
	}

	// A latent is whole on every device, so the bound is not less than the latent if it is divided
	// over many devices.
	l := latent()
	l.Architecture.Bound = &estimate.Cache{Heads: 16, Key: 100, Value: 50}
	for tensor, want := range map[int]cluster.Bytes{1: 1000 * 61 * 16 * 150 * 2, 16: 1000 * 61 * 576 * 2} {
		if b := device(t, l, estimate.Serving{Tensor: tensor, Context: 1000}); b.KVCache != want {
			t.Errorf("latents over %d devices: cache %d, want %d", tensor, b.KVCache, want)
		}
	}
}

// A server that quantises weights after it has loaded all of them needs memory for all of them
// with 16 bits, but not at the same time as the cache.
func TestPlainLoad(t *testing.T) {
	m := eight()
	m.Weights.Plain = m.Weights.Total()
	s := estimate.Serving{Context: 1024, WeightBits: 8, Overhead: gib}
	later := device(t, m, s)
	s.PlainLoad = true
	if b, want := device(t, m, s), m.Weights.Total()+m.Weights.Total()/128+gib; b.Total() != want || b.Weights != later.Weights {
		t.Errorf("%+v is %d, want %d", b, b.Total(), want)
	}
	s.Context = 131072
	whole := device(t, m, s)
	s.PlainLoad = false
	if b := device(t, m, s); b != whole {
		t.Errorf("with a large cache %+v, and without loading %+v", whole, b)
	}
	for _, bits := range []int{0, 4, 16} {
		s := estimate.Serving{Context: 1024, WeightBits: bits}
		without := device(t, m, s)
		s.PlainLoad = true
		if with := device(t, m, s); with != without {
			t.Errorf("%d bits: %+v, want %+v", bits, with, without)
		}
	}
}

// Weights that bitsandbytes quantises are unpacked before they are used, whether they are
// quantised in the files or as they are loaded.
func TestUnpackedWeights(t *testing.T) {
	plain, stored := eight(), eight()
	plain.Weights.Plain = plain.Weights.Total()
	stored.Weights.Quantised = "bitsandbytes 4"
	s := estimate.Serving{Context: 8192}
	none := device(t, plain, s).Activations
	const matrix = 4096 * 14336 * 2
	if got := device(t, stored, s).Activations; got != none+matrix {
		t.Errorf("in the files: %d more, want %d", got-none, matrix)
	}
	s.WeightBits = 4
	if got := device(t, plain, s).Activations; got != none+matrix {
		t.Errorf("as they are loaded: %d more, want %d", got-none, matrix)
	}
	if got := device(t, stored, s).Activations; got != none+matrix {
		t.Errorf("both: %d more, want %d", got-none, matrix)
	}
	// All experts of a layer are unpacked at once.
	a := plain.Architecture
	a.Experts, a.Active, a.Width = 8, 2, 14336
	without := device(t, plain, estimate.Serving{Context: 8192}).Activations
	if got := device(t, plain, s).Activations; got != without+8*3*matrix {
		t.Errorf("experts: %d more, want %d", got-without, 8*3*matrix)
	}
}

// A number that must not be negative is named.
func TestNegativeNumbers(t *testing.T) {
	tests := map[string]func(*estimate.Architecture, *estimate.Serving){
		"the number of data-parallel ranks":     func(_ *estimate.Architecture, s *estimate.Serving) { s.Data = -1 },
		"the number of states":                  func(_ *estimate.Architecture, s *estimate.Serving) { s.States = -1 },
		"the ratio of states":                   func(_ *estimate.Architecture, s *estimate.Serving) { s.StateRatio = -1 },
		"the padding of weights":                func(_ *estimate.Architecture, s *estimate.Serving) { s.ExtraWeights = -1 },
		"the number of tokens of a micro-batch": func(_ *estimate.Architecture, s *estimate.Serving) { s.MicroBatch = -1 },
		"the longest prompt of a step":          func(_ *estimate.Architecture, s *estimate.Serving) { s.Prompt = -1 },
		"a size of the cache of layer 7": func(a *estimate.Architecture, _ *estimate.Serving) {
			a.Caches = []estimate.Cache{{Layer: 7, State: -1}}
		},
	}
	for name, change := range tests {
		m, s := eight(), estimate.Serving{Context: 1024}
		change(m.Architecture, &s)
		want := "model eight: " + name + " is -1; it must not be negative"
		if _, err := m.PerDevice(s); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := m.KVAt(s, 1024); err == nil || err.Error() != want {
			t.Errorf("KVAt: %v, want %s", err, want)
		}
	}
}

// Up to a context of 4,096 tokens, a step processes a whole prompt, so a longer context may need
// less. The result is the largest context that fits, whatever context is set.
func TestLargestContextWithPrompts(t *testing.T) {
	m := eight()
	m.Architecture.MaxContext = 6000
	s := estimate.Serving{BatchTokens: 512, Prompt: 4096}
	need := make([]cluster.Bytes, 6001)
	for context := 1; context <= 6000; context++ {
		s.Context = context
		need[context] = device(t, m, s).Total()
	}
	if need[4097] >= need[4096] {
		t.Fatalf("4,097 tokens need %d, and 4,096 need %d", need[4097], need[4096])
	}
	for memory := need[1] - 1; memory < need[4096]+10*mib; memory += 2 * mib {
		want := 0
		for context, n := range need {
			if context > 0 && n <= memory {
				want = context
			}
		}
		for _, context := range []int{0, 100, 4096, 4097} {
			s.Context = context
			if got, err := m.LargestContext(s, memory); got != want || err != nil {
				t.Fatalf("%d bytes, context %d: %d, %v, want %d", memory, context, got, err, want)
			}
		}
	}
}
