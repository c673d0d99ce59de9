package gguf_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/gguf/sample"
	"github.com/google/go-cmp/cmp"
	parser "github.com/gpustack/gguf-parser-go"
)

func of(t testing.TB, m *estimate.Model, form estimate.Serving) estimate.LayeredNeed {
	t.Helper()
	need, err := m.Layered.Need(form)
	if err != nil {
		t.Fatal(err)
	}
	return need
}

// theirs returns the parser's estimate of a file that the parser has read.
func theirs(t testing.TB, path string, context int, opts ...parser.GGUFRunEstimateOption) parser.LLaMACppRunEstimate {
	t.Helper()
	f, err := parser.ParseGGUFFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return f.EstimateLLaMACppRun(append(opts, parser.WithLLaMACppContextSize(int32(context)), parser.WithFlashAttention())...)
}

// A token takes two numbers per layer, KV head and dimension: 2 × 32 × 8 × 128 × 2
// bytes.
func TestCacheOfATokenIsTheFormula(t *testing.T) {
	path := write(t, "m.gguf", sample.Llama8B(), true)
	need := of(t, mustRead(t, path), estimate.Serving{Context: 8192})
	if got := need.Whole.KVCache / 8192; got != 131072 {
		t.Errorf("a token takes %d bytes, not 131072", got)
	}
	if got := theirs(t, path, 8192).Devices[1].KVCache.Sum(); cluster.Bytes(got) != need.Whole.KVCache {
		t.Errorf("the parser has %d bytes, not %d", got, need.Whole.KVCache)
	}
}

// A latent is cached once for all heads: 61 × (512 + 64) × 2 bytes. The parser counts a
// key and a value of one head instead: 61 × (192 + 128) × 2.
func TestLatentsAreCorrected(t *testing.T) {
	path := write(t, "m.gguf", sample.DeepSeekV3(), true)
	m := mustRead(t, path)
	need := of(t, m, estimate.Serving{Context: 8192})
	if got := need.Whole.KVCache / 8192; got != 70272 {
		t.Errorf("a token takes %d bytes, not 70272", got)
	}
	if got := theirs(t, path, 8192).Devices[1].KVCache.Sum() / 8192; got != 39040 {
		t.Errorf("the parser has %d bytes a token: is the correction still needed?", got)
	}
	if said := strings.Join(m.Assumed, " "); !strings.Contains(said, "one latent of 576 numbers a token and layer (rank 512, rotary 64); gguf-parser-go counts 320") {
		t.Errorf("assumed: %q", said)
	}
}

// The weights on a device are those that the parser counts, and the node's memory is at
// least what it counts, with the embedding, which the parser counts as mapped memory.
func TestFiguresAreTheParsers(t *testing.T) {
	for _, name := range sample.Names {
		f, _ := sample.Named(name)
		path := write(t, name+".gguf", f.Loadable(), true)
		need := of(t, mustRead(t, path), estimate.Serving{Context: 16384, Sequences: 1})
		run := theirs(t, path, 16384)
		if want := cluster.Bytes(run.Devices[1].Weight.Sum()); need.Whole.Weights != want {
			t.Errorf("%s: weights %d, not %d", name, need.Whole.Weights, want)
		}
		host, items := run.Devices[0], run.SummarizeItem(true, 150<<20, 0)
		if least := cluster.Bytes(items.RAM.NonUMA + host.Weight.Input + host.Weight.Compute); need.Host < least || need.Host > least+64<<20 {
			t.Errorf("%s: host %d, and the parser has %d", name, need.Host, least)
		}
	}
}

func sum(n estimate.LayeredNeed) cluster.Bytes {
	l := n.Divisible(n.Divided)
	return l.Fixed + l.All()
}

func TestLayersCoverTheWhole(t *testing.T) {
	files := []sample.File{sample.Llama8B(), sample.Llama70B(), sample.DeepSeekV3(), tiny("llama"), tiny("gemma3", key("gemma3.attention.sliding_window", uint32(512)))}
	for _, f := range files {
		m := mustRead(t, write(t, "m.gguf", f, false))
		last := cluster.Bytes(0)
		for _, context := range []int{1, 512, 8192, 131072, 1 << 20} {
			for _, sequences := range []int{1, 16} {
				for _, bits := range []int{4, 8, 16} {
					need := of(t, m, estimate.Serving{Context: context, Sequences: sequences, KVBits: bits})
					if sum(need) < need.Whole.Total() {
						t.Errorf("%d × %d: layers come to %d, below the whole of %d", sequences, context, sum(need), need.Whole.Total())
					}
					if need.Layers != m.Architecture.Layers+1 || need.HostOnly < m.Weights.Total()+need.Whole.KVCache {
						t.Errorf("%d × %d: %+v", sequences, context, need)
					}
				}
			}
			need := of(t, m, estimate.Serving{Context: context})
			if need.Whole.Total() < last {
				t.Errorf("%d tokens take less than fewer did: %+v", context, need)
			}
			last = need.Whole.Total()
		}
	}
}

// The layers of a file in Q4_K_M have two sizes, and the output layer has its own.
func TestSizesOfLayers(t *testing.T) {
	need := of(t, mustRead(t, write(t, "m.gguf", sample.Llama70B(), false)), estimate.Serving{Context: 8192})
	const (
		cache  = 2 * 8 * 128 * 2 * 8192
		norms  = 2 * 8192 * 4
		small  = (2*8192*8192+8192*1024+3*8192*28672)/256*144 + 8192*1024/256*176 + norms + cache
		large  = (2*8192*8192+8192*1024+2*8192*28672)/256*144 + (8192*1024+8192*28672)/256*210 + norms + cache
		output = 8192*128256/256*210 + 8192*4
	)
	count := map[cluster.Bytes]int{}
	for _, b := range need.Sizes[:80] {
		count[b]++
	}
	if diff := cmp.Diff(map[cluster.Bytes]int{small: 40, large: 40}, count); diff != "" {
		t.Error(diff)
	}
	if got := need.Sizes[80]; len(need.Sizes) != 81 || got != output || need.Bytes != output {
		t.Errorf("%d layers; the last has %d bytes, not %d; the largest has %d", len(need.Sizes), got, output, need.Bytes)
	}
}

// The parser takes the last tensors of a file for its last layer. The order of the
// tensors in a file must not matter.
func TestOrderOfTensorsDoesNotMatter(t *testing.T) {
	straight, turned := sample.Llama8B(), sample.Llama8B()
	for i, n := 0, len(turned.Tensors); i < n; i++ {
		turned.Tensors[i] = straight.Tensors[n-1-i]
	}
	form := estimate.Serving{Context: 8192}
	a := of(t, mustRead(t, write(t, "m.gguf", straight, false)), form)
	b := of(t, mustRead(t, write(t, "m.gguf", turned, false)), form)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}

func TestServingParameters(t *testing.T) {
	m := mustRead(t, write(t, "m.gguf", sample.Llama8B(), false))
	at := func(f estimate.Serving) cluster.Bytes { return of(t, m, f).Whole.KVCache }
	const full = 131072 * 131072 // bytes per token × the longest context
	tests := map[string]struct {
		form estimate.Serving
		want cluster.Bytes
	}{
		"the longest context of the model": {estimate.Serving{}, full},
		"a context":                        {estimate.Serving{Context: 8192}, full / 16},
		"rounded up to 256":                {estimate.Serving{Context: 8193}, 131072 * 8448},
		"eight sequences":                  {estimate.Serving{Context: 8192, Sequences: 8}, full / 2},
		"8 bits with their scales":         {estimate.Serving{Context: 8192, KVBits: 8}, full / 16 * 34 / 64},
		"4 bits with their scales":         {estimate.Serving{Context: 8192, KVBits: 4}, full / 16 * 18 / 64},
		"parallelism does not count":       {estimate.Serving{Context: 8192, Tensor: 4, Pipeline: 2, Overhead: 1}, full / 16},
	}
	for name, test := range tests {
		if got := at(test.form); got != test.want {
			t.Errorf("%s: %d, not %d", name, got, test.want)
		}
	}
	for want, form := range map[string]estimate.Serving{
		"no cache of 5 bits; use 16, 8 or 4":                      {KVBits: 5},
		"1 sequences of -1 tokens are not possible":               {Context: -1},
		"-2 sequences of 131072 tokens are not possible":          {Sequences: -2},
		"99999 sequences are too many; at most 65536 are allowed": {Sequences: 99999},
		"4096 sequences of 131072 tokens are too many":            {Sequences: 4096},
		"1 sequences of 9223372036854775807 tokens are too many":  {Context: 1<<63 - 1},
	} {
		if _, err := m.Layered.Need(form); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v does not say %q", form, err, want)
		}
	}
	unsaid := mustRead(t, write(t, "m.gguf", tiny("llama", key("llama.context_length", nil)), false))
	if _, err := unsaid.Layered.Need(estimate.Serving{}); err == nil || !strings.Contains(err.Error(), "set a context") {
		t.Errorf("without a context: %v", err)
	}
}

func TestNeedsAreCached(t *testing.T) {
	m := mustRead(t, write(t, "m.gguf", sample.Llama70B(), false))
	first := of(t, m, estimate.Serving{Context: 8192})
	if n := testing.AllocsPerRun(100, func() { of(t, m, estimate.Serving{Context: 8192}) }); n > 0 {
		t.Errorf("a cached need takes %v allocations", n)
	}
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			of(t, m, estimate.Serving{Context: 4096 * (i + 1)})
			if got, err := m.Layered.Need(estimate.Serving{Context: 8192}); err != nil || !cmp.Equal(got, first) {
				t.Errorf("%+v, %v, not %+v", got, err, first)
			}
		})
	}
	wait.Wait()
}

func BenchmarkNeed(b *testing.B) {
	m := mustRead(b, write(b, "m.gguf", sample.Llama70B(), false))
	context := 1
	for b.Loop() {
		context++
		of(b, m, estimate.Serving{Context: context})
	}
}
