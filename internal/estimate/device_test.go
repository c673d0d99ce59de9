package estimate_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

const mib, gib = cluster.Bytes(1 << 20), cluster.Bytes(1 << 30)

// eight returns Llama-3.1-8B.
func eight() *estimate.Model {
	return &estimate.Model{
		Name: "eight",
		Weights: estimate.Weights{
			Layers: 13_958_643_712, Embedding: 1_050_673_152, Head: 1_050_673_152, Replicated: 532_480,
			Bits: 1600, Parameters: 8_030_261_248,
		},
		Architecture: &estimate.Architecture{
			Layers: 32, Hidden: 4096, Intermediate: 14336, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 128256, MaxContext: 131072,
		},
	}
}

// latent returns a model with the attention of DeepSeek-V3.
func latent() *estimate.Model {
	m := eight()
	m.Architecture = &estimate.Architecture{
		Layers: 61, Hidden: 7168, Intermediate: 18432, Heads: 128, KVHeads: 128, HeadDim: 192, ValueDim: 128,
		Latent: &estimate.Latent{Rank: 512, Rope: 64}, Vocab: 129280, MaxContext: 163840, Experts: 256, Active: 8,
	}
	return m
}

func device(t *testing.T, m *estimate.Model, f estimate.Serving) estimate.Breakdown {
	t.Helper()
	b, err := m.PerDevice(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOneDevice(t *testing.T) {
	got := device(t, eight(), estimate.Serving{Context: 8192, Overhead: gib, Graph: 2 * gib})
	want := estimate.Breakdown{
		Weights: 16_060_522_496,
		KVCache: 8192 * 131072, // 1 GiB
		// The stream of 2,048 × 4,096 six times (96 MiB), gate, up and product of 14,336
		// (168 MiB), and the workspace.
		Activations: 96*mib + 168*mib + 32*mib,
		Graph:       2 * gib,
		Overhead:    gib + 16_060_522_496/128, // what is lost because matrices are rounded up
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got.Total() != want.Weights+want.KVCache+want.Activations+3*gib+16_060_522_496/128 {
		t.Errorf("total %d", got.Total())
	}
}

// The figures are without workspace and residual stream: 24 MiB for each 2,048
// × 6,144 numbers.
func TestWidestPoint(t *testing.T) {
	tests := map[string]struct {
		change func(*estimate.Model, *estimate.Serving)
		want   cluster.Bytes
	}{
		"gate, up, product": {func(m *estimate.Model, _ *estimate.Serving) { m.Architecture.Intermediate = 12288 }, 3 * 48 * mib},
		"divided":           {func(m *estimate.Model, f *estimate.Serving) { m.Architecture.Intermediate = 49152; f.Tensor = 4 }, 3 * 48 * mib},
		"queries of 32 MiB": {func(m *estimate.Model, _ *estimate.Serving) {
			m.Architecture.Intermediate = 0
			m.Architecture.HeadDim = 256
		}, (5*32 + 4*8) * mib},
		"experts, way in": {func(m *estimate.Model, _ *estimate.Serving) {
			m.Architecture.Experts, m.Architecture.Active, m.Architecture.Intermediate = 8, 1, 6144
		}, 16*mib + 4*24*mib},
		"experts, way out": {func(m *estimate.Model, _ *estimate.Serving) {
			m.Architecture.Experts, m.Architecture.Active, m.Architecture.Intermediate = 64, 8, 6144
		}, 8 * 96 * mib},
		"unpacked weights": {func(m *estimate.Model, _ *estimate.Serving) {
			m.Architecture.Intermediate, m.Weights.Quantised = 12288, "bitsandbytes"
		}, 3*48*mib + 96*mib},
		"few tokens": {func(m *estimate.Model, f *estimate.Serving) { m.Architecture.Intermediate = 12288; f.Context = 1024 }, 3*24*mib - 48*mib},
		// 1,000 rows of 128,256, with a sixth of the stream instead of all of it.
		"logits": {func(_ *estimate.Model, f *estimate.Serving) { f.Sequences = 1000 }, 1000*128256*10 - 80*mib},
	}
	for name, test := range tests {
		m, f := eight(), estimate.Serving{Context: 8192}
		test.change(m, &f)
		b := device(t, m, f)
		if got := b.Activations - 32*mib - 96*mib; got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestParallelismDivides(t *testing.T) {
	m := eight()
	tests := map[string]struct {
		form    estimate.Serving
		weights cluster.Bytes
		cache   cluster.Bytes
	}{
		"tensor 2":              {estimate.Serving{Tensor: 2}, 13_958_643_712/2 + 1_050_673_152 + 532_480, gib / 2},
		"tensor 8":              {estimate.Serving{Tensor: 8}, 13_958_643_712/8 + 1_050_673_152/4 + 532_480, gib / 8},
		"pipeline 2":            {estimate.Serving{Pipeline: 2}, 13_958_643_712/2 + 1_050_673_152 + 532_480, gib / 2},
		"pipeline 3, 11 layers": {estimate.Serving{Pipeline: 3}, 13_958_643_712/32*11 + 1_050_673_152 + 532_480, gib * 11 / 32},
		"both":                  {estimate.Serving{Tensor: 2, Pipeline: 2}, 13_958_643_712/4 + 1_050_673_152/2 + 532_480, gib / 4},
		"8 bits":                {estimate.Serving{KVBits: 8}, 16_060_522_496, gib / 2},
		"4 bits":                {estimate.Serving{KVBits: 4}, 16_060_522_496, gib / 4},
		// Each of 16 devices holds one of 8 key heads, so each key head is held twice: the
		// additional copies are keys and values of 128 × 4,096 in 32 layers, over 16 devices.
		"more devices than key heads": {estimate.Serving{Tensor: 16}, 13_958_643_712/16 + 1_050_673_152/8 + 532_480 + 32*8*256*4096*2/16, gib / 8},
	}
	for name, test := range tests {
		test.form.Context = 8192
		b := device(t, m, test.form)
		if b.Weights != test.weights || b.KVCache != test.cache {
			t.Errorf("%s: weights %d, cache %d, want %d and %d", name, b.Weights, b.KVCache, test.weights, test.cache)
		}
	}
}

func TestLatentIsWholeOnEveryDevice(t *testing.T) {
	m := latent()
	for _, tensor := range []int{1, 8, 16} {
		if b := device(t, m, estimate.Serving{Tensor: tensor, Context: 1000, Sequences: 3}); b.KVCache != 3*1000*70272 {
			t.Errorf("tensor %d: cache %d", tensor, b.KVCache)
		}
	}
	if b := device(t, m, estimate.Serving{Pipeline: 2, Context: 1000}); b.KVCache != 1000*31*576*2 {
		t.Errorf("pipeline 2: cache %d", b.KVCache)
	}
}

// Of the four layers only the last has no window. The stage with this layer keeps most
// tokens.
func TestWindowsByStage(t *testing.T) {
	m := eight()
	m.Architecture.Layers = 4
	m.Architecture.Caches = m.Architecture.WithWindows([]int{100, 100, 100, 0})
	const perLayer = 2 * 8 * 128 * 2
	if b := device(t, m, estimate.Serving{Context: 1000, Sequences: 2}); b.KVCache != 2*perLayer*(300+1000) {
		t.Errorf("one stage: cache %d", b.KVCache)
	}
	if b := device(t, m, estimate.Serving{Context: 1000, Pipeline: 2}); b.KVCache != perLayer*(100+1000) {
		t.Errorf("two stages: cache %d", b.KVCache)
	}
	// One layer has its window and the tokens of a step at once.
	with := device(t, m, estimate.Serving{Context: 1000, BatchTokens: 64}).Activations
	m.Architecture.Caches = nil
	without := device(t, m, estimate.Serving{Context: 1000, BatchTokens: 64}).Activations
	if with-without != (100+64)*perLayer {
		t.Errorf("a step adds %d", with-without)
	}
}

func TestErrors(t *testing.T) {
	tests := map[string]struct {
		change func(*estimate.Model, *estimate.Serving)
		want   string
	}{
		"heads":               {func(_ *estimate.Model, f *estimate.Serving) { f.Tensor = 3 }, "32 attention heads of model eight do not divide over 3"},
		"vocabulary":          {func(m *estimate.Model, f *estimate.Serving) { m.Architecture.Vocab = 50257; f.Tensor = 2 }, "50257, does not divide over 2"},
		"stages":              {func(_ *estimate.Model, f *estimate.Serving) { f.Pipeline = 33 }, "32 layers of model eight cannot be divided into 33 stages"},
		"negative":            {func(_ *estimate.Model, f *estimate.Serving) { f.Sequences = -1 }, "negative"},
		"bits":                {func(_ *estimate.Model, f *estimate.Serving) { f.KVBits = 7 }, "7 bits"},
		"no context":          {func(m *estimate.Model, _ *estimate.Serving) { m.Architecture.MaxContext = 0 }, "set a context"},
		"no architecture":     {func(m *estimate.Model, _ *estimate.Serving) { m.Architecture = nil }, "architecture of model eight is not known"},
		"no weights":          {func(m *estimate.Model, _ *estimate.Serving) { m.Weights = estimate.Weights{} }, "weights of model eight are not known"},
		"a size is not known": {func(m *estimate.Model, _ *estimate.Serving) { m.Architecture.Hidden = 0 }, "are not known"},
		"too much":            {func(_ *estimate.Model, f *estimate.Serving) { f.Context, f.Sequences = math.MaxInt32, math.MaxInt32 }, "2147483647 sequences of 2147483647 tokens needs more than 1 EiB of a device; set a shorter context or fewer sequences"},
	}
	for name, test := range tests {
		m, f := eight(), estimate.Serving{}
		test.change(m, &f)
		if _, err := m.PerDevice(f); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, want %q in it", name, err, test.want)
		}
	}
}

func TestCheckTensor(t *testing.T) {
	odd := eight()
	odd.Architecture.Vocab = 50257
	for _, tensor := range []int{2, 3, 4, 5, 8, 16, 32, 40} {
		if err := eight().CheckTensor(estimate.Serving{Tensor: tensor}); (err == nil) != (tensor&(tensor-1) == 0) {
			t.Errorf("over %d: %v", tensor, err)
		}
		if odd.CheckTensor(estimate.Serving{Tensor: tensor}) == nil {
			t.Errorf("an odd vocabulary is divided over %d", tensor)
		}
	}
}

func TestCrudeTotal(t *testing.T) {
	m := &estimate.Model{Name: "m", Weights: estimate.Weights{Layers: 10 * gib}}
	if got, err := m.CrudeTotal(); err != nil || got != 14*gib {
		t.Errorf("%d, %v", got, err)
	}
	m.Weights.Layers = 0
	if _, err := m.CrudeTotal(); err == nil {
		t.Error("no weights, no error")
	}
}

// Ten million tokens and a million sequences are computed exactly and not capped.
func TestLargeServingParametersAreExact(t *testing.T) {
	m := eight()
	if b := device(t, m, estimate.Serving{Context: 10_000_000, Sequences: 100_000}); b.KVCache != 131_072*10_000_000*100_000 {
		t.Errorf("cache %d", b.KVCache)
	}
	if b := device(t, m, estimate.Serving{Context: 10_000, Sequences: 1_000_000}); b.KVCache != 131_072*10_000*1_000_000 {
		t.Errorf("cache %d", b.KVCache)
	}
}

func TestLargestContextIsTheLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := eight()
		if rapid.Bool().Draw(t, "windows") {
			windows := make([]int, 32)
			for i := range 31 {
				windows[i] = rapid.IntRange(0, 5000).Draw(t, "window")
			}
			m.Architecture.Caches = m.Architecture.WithWindows(windows)
		}
		f := estimate.Serving{
			Tensor: rapid.SampledFrom([]int{1, 2, 8, 16}).Draw(t, "tensor"), Pipeline: rapid.IntRange(1, 32).Draw(t, "pipeline"),
			Sequences: rapid.IntRange(1, 64).Draw(t, "sequences"), KVBits: rapid.SampledFrom([]int{4, 8, 16}).Draw(t, "bits"),
		}
		memory := cluster.Bytes(rapid.Int64Range(0, 80<<30).Draw(t, "memory"))
		n, err := m.LargestContext(f, memory)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			f.Context = n
			if b, err := m.PerDevice(f); err != nil || b.Total() > memory {
				t.Fatalf("%d tokens need %d of %d, %v", n, b.Total(), memory, err)
			}
		}
		if n < m.Architecture.MaxContext {
			f.Context = n + 1
			if b, err := m.PerDevice(f); err != nil || b.Total() <= memory {
				t.Fatalf("%d tokens would fit as well: %d of %d, %v", n+1, b.Total(), memory, err)
			}
		}
	})
}

// A larger value of any parameter never needs less, and more devices never need more
// each.
func TestMoreNeedsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom([]*estimate.Model{eight(), latent()}).Draw(t, "model")
		f := estimate.Serving{
			Context: rapid.IntRange(1, 100_000).Draw(t, "context"), Sequences: rapid.IntRange(1, 1000).Draw(t, "sequences"),
			BatchTokens: rapid.IntRange(1, 16384).Draw(t, "batch"), Tensor: rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "tensor"),
		}
		base, err := m.PerDevice(f)
		if err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(*estimate.Serving){
			"context":   func(f *estimate.Serving) { f.Context++ },
			"sequences": func(f *estimate.Serving) { f.Sequences++ },
			"batch":     func(f *estimate.Serving) { f.BatchTokens++ },
		} {
			g := f
			change(&g)
			if b, err := m.PerDevice(g); err != nil || b.Total() < base.Total() {
				t.Fatalf("more of %s: %+v after %+v, %v", name, b, base, err)
			}
		}
		g := f
		g.Tensor *= 2
		if b, err := m.PerDevice(g); err != nil || b.Total() > base.Total() {
			t.Fatalf("twice the devices: %+v after %+v, %v", b, base, err)
		}
	})
}
