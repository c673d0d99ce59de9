package gguf_test

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/gguf/sample"
	"github.com/google/go-cmp/cmp"
	parser "github.com/gpustack/gguf-parser-go"
)

// shape returns the architecture of tiny with the changes of a test.
func shape(name string, change func(*estimate.Architecture)) *estimate.Architecture {
	a := &estimate.Architecture{Name: name, Layers: 2, Hidden: 64, Intermediate: 128, Heads: 4, KVHeads: 2, HeadDim: 16, Vocab: 100, MaxContext: 4096}
	if change != nil {
		change(a)
	}
	return a
}

func TestArchitectures(t *testing.T) {
	// A number in the cache has 2 bytes. One layer has keys and values of 2 heads of 16
	// numbers for each of 4096 tokens.
	const layer = 2 * 2 * 16 * 4096 * 2
	tests := map[string]struct {
		file  sample.File
		want  *estimate.Architecture
		cache cluster.Bytes
		said  string
	}{
		"grouped heads": {tiny("llama"), shape("llama", nil), 2 * layer, ""},
		"all heads if KV heads are not in the file": {
			tiny("llama", key("llama.attention.head_count_kv", nil)),
			shape("llama", func(a *estimate.Architecture) { a.KVHeads = 4 }), 4 * layer, "",
		},
		"wider keys than values": {
			tiny("llama", key("llama.attention.key_length", uint32(48)), key("llama.attention.value_length", uint32(16))),
			shape("llama", func(a *estimate.Architecture) { a.HeadDim, a.ValueDim = 48, 16 }), 4 * layer, "",
		},
		"KV heads by layer": {
			tiny("llama", key("llama.attention.head_count_kv", []uint32{1, 2})),
			shape("llama", func(a *estimate.Architecture) {
				a.Caches = a.WithWindows([]int{0, 0})
				a.Caches[0].Heads = 1
			}), layer + layer/2, "KV heads differ from layer to layer, from 1 to 2",
		},
		"a layer without attention": {
			tiny("llama", key("llama.attention.head_count_kv", []uint32{0, 2})),
			shape("llama", func(a *estimate.Architecture) { a.Caches = a.WithWindows([]int{0, 0})[1:] }), layer, "",
		},
		"the widest of experts": {
			tiny("llama", key("llama.expert_count", uint32(8)), key("llama.expert_used_count", uint32(2)), key("llama.expert_feed_forward_length", uint32(256))),
			shape("llama", func(a *estimate.Architecture) { a.Experts, a.Active, a.Intermediate = 8, 2, 256 }), 2 * layer, "",
		},
		"latents from before they were cached": {
			tiny("deepseek2", key("deepseek2.attention.kv_lora_rank", uint32(8))),
			shape("deepseek2", nil), 2 * layer, "from before llama.cpp cached latents",
		},
		// 512 of the window and a micro-batch of 512 are 1024 tokens.
		"windows by architecture": {
			tiny("gpt-oss", key("gpt-oss.attention.sliding_window", uint32(512))),
			shape("gpt-oss", func(a *estimate.Architecture) { a.Caches = a.WithWindows([]int{512, 0}) }), layer + layer/4, "look back 512 tokens",
		},
		"windows by layer": {
			tiny("new", key("new.attention.sliding_window", uint32(512)), key("new.attention.sliding_window_pattern", []bool{false, true})),
			shape("new", func(a *estimate.Architecture) { a.Caches = a.WithWindows([]int{0, 512}) }), layer + layer/4, "look back 512 tokens",
		},
		"a window without its layers": {
			tiny("new", key("new.attention.sliding_window", uint32(512))),
			shape("new", nil), 2 * layer, "a window of 512 tokens, but not for which layers",
		},
		"an embedding model": {
			tiny("bert", key("bert.attention.causal", false)),
			shape("bert", nil), 0, "keeps no cache",
		},
		// The layer without attention has a state of 3 × (32 + 2 × 1 × 4) + 4 × 32 numbers of 4 bytes.
		"a state and a cache": {
			tiny("jamba", key("jamba.attention.head_count_kv", []uint32{0, 2}), key("jamba.ssm.conv_kernel", uint32(4)),
				key("jamba.ssm.inner_size", uint32(32)), key("jamba.ssm.state_size", uint32(4)), key("jamba.ssm.group_count", uint32(1))),
			shape("jamba", func(a *estimate.Architecture) { a.Caches = a.WithWindows([]int{0, 0})[1:] }), layer + 4*(3*40+128), "",
		},
		"every second layer attends": {
			tiny("qwen3next", key("qwen3next.full_attention_interval", uint32(2)), key("qwen3next.ssm.conv_kernel", uint32(4)),
				key("qwen3next.ssm.inner_size", uint32(32)), key("qwen3next.ssm.state_size", uint32(4))),
			shape("qwen3next", func(a *estimate.Architecture) { a.Caches = a.WithWindows([]int{0, 0})[1:] }), layer + 4*(3*32+128), "",
		},
		"the layers with a state are named": {
			tiny("qwen3next", key("qwen3next.ssm.conv_kernel", uint32(4)), key("qwen3next.ssm.inner_size", uint32(32)), key("qwen3next.ssm.state_size", uint32(4)),
				key("qwen3next.attention.recurrent_layers", []bool{false, true})),
			shape("qwen3next", func(a *estimate.Architecture) { a.Caches = a.WithWindows([]int{0, 0})[:1] }), layer + 4*(3*32+128), "",
		},
		"a short convolution": {
			tiny("lfm2", key("lfm2.attention.head_count_kv", []uint32{0, 2}), key("lfm2.shortconv.l_cache", uint32(3))),
			shape("lfm2", func(a *estimate.Architecture) { a.Caches = a.WithWindows([]int{0, 0})[1:] }), layer + 4*2*64, "",
		},
		// Three convolutions of 4 heads of 8 numbers, and 4 states of 8 × 8.
		"delta attention": {
			tiny("kimi-linear", key("kimi-linear.attention.head_count_kv", []uint32{0, 2}), key("kimi-linear.kda.head_dim", uint32(8)), key("kimi-linear.ssm.conv_kernel", uint32(4))),
			shape("kimi-linear", func(a *estimate.Architecture) { a.Caches = a.WithWindows([]int{0, 0})[1:] }), layer + 4*(3*3*4*8+4*8*8), "",
		},
		"attention and a state in each layer": {
			tiny("falcon-h1", key("falcon-h1.ssm.conv_kernel", uint32(4)), key("falcon-h1.ssm.inner_size", uint32(32)), key("falcon-h1.ssm.state_size", uint32(4)), key("falcon-h1.ssm.group_count", uint32(1))),
			shape("falcon-h1", nil), 2*layer + 2*4*(3*40+128), "",
		},
		"a layer that is an MLP": {
			tiny("nemotron_h", key("nemotron_h.attention.head_count_kv", []uint32{0, 2}), key("nemotron_h.feed_forward_length", []uint32{128, 0}), key("nemotron_h.ssm.conv_kernel", uint32(4)),
				key("nemotron_h.ssm.inner_size", uint32(32)), key("nemotron_h.ssm.state_size", uint32(4)), key("nemotron_h.ssm.group_count", uint32(1))),
			shape("nemotron_h", func(a *estimate.Architecture) { a.Caches = a.WithWindows([]int{0, 0})[1:] }), layer, "",
		},
		"linear attention": {
			tiny("minimax-01", key("minimax-01.full_attention_interval", uint32(2))),
			shape("minimax-01", func(a *estimate.Architecture) { a.Caches = a.WithWindows([]int{0, 0})[1:] }), layer + 4*4*16*16, "",
		},
		"a model that scores texts": {
			tiny("qwen3", key("qwen3.pooling_type", uint32(4))),
			shape("qwen3", nil), 0, "keeps no cache",
		},
		"a state without a cache": {
			tiny("mamba", key("mamba.attention.head_count", nil), key("mamba.attention.head_count_kv", nil), key("mamba.ssm.conv_kernel", uint32(4)),
				key("mamba.ssm.inner_size", uint32(32)), key("mamba.ssm.state_size", uint32(4))),
			nil, 2 * 4 * (3*32 + 128), "a state of fixed size, not a cache",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := mustRead(t, write(t, "m.gguf", test.file, true))
			if diff := cmp.Diff(test.want, m.Architecture); diff != "" {
				t.Error(diff)
			}
			if got := of(t, m, estimate.Serving{Sequences: 1}).Whole.KVCache; got != test.cache {
				t.Errorf("the cache has %d bytes, not %d", got, test.cache)
			}
			if said := strings.Join(m.Assumed, " "); !strings.Contains(said, test.said) {
				t.Errorf("assumed %q, which does not say %q", said, test.said)
			}
		})
	}
}

// States that the parser supports have the parser's figures.
// As in llama.cpp, the last layers of gemma3n and gemma4 use the keys and values of earlier layers
// and keep none. Layers with a window may have heads of their own size.
func TestSharedKeysAndValues(t *testing.T) {
	const token = 2 * 16 * 2 // bytes of a key or a value of 2 heads of 16 numbers
	gemma4 := func(more ...sample.Key) sample.File {
		return tiny("gemma4", append([]sample.Key{
			key("gemma4.block_count", uint32(6)), key("gemma4.attention.sliding_window", uint32(512)),
			key("gemma4.attention.sliding_window_pattern", []bool{true, true, false, true, true, false}),
		}, more...)...)
	}
	window := cluster.Bytes(512 + 512) // tokens: the window and one micro-batch
	tests := map[string]struct {
		file sample.File
		want cluster.Bytes
		said string
	}{
		"none":           {gemma4(), 2 * token * (4*window + 2*4096), ""},
		"three of six":   {gemma4(key("gemma4.attention.shared_kv_layers", uint32(3))), 2 * token * (2*window + 4096), "Only the first 3 of 6 layers keep keys and values"},
		"smaller heads":  {gemma4(key("gemma4.attention.shared_kv_layers", uint32(3)), key("gemma4.attention.key_length_swa", uint32(8)), key("gemma4.attention.value_length_swa", uint32(8))), token * (2*window + 2*4096), ""},
		"other models":   {tiny("llama", key("llama.attention.shared_kv_layers", uint32(1))), 2 * 2 * token * 4096, ""},
		"gemma3n of two": {tiny("gemma3n", key("gemma3n.attention.shared_kv_layers", uint32(1))), 2 * 2 * token * 4096, ""},
		"gemma3n of 30": {tiny("gemma3n", key("gemma3n.block_count", uint32(30)), key("gemma3n.attention.sliding_window", uint32(512)), key("gemma3n.attention.shared_kv_layers", uint32(10))),
			2 * token * (16*window + 4*4096), "Only the first 20 of 30 layers keep keys and values"},
	}
	for name, tt := range tests {
		m := mustRead(t, write(t, "m.gguf", tt.file, true))
		s := estimate.Serving{Context: 4096, Sequences: 1}
		if got := of(t, m, s).Whole.KVCache; got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
		if said := strings.Join(m.Assumed, " "); !strings.Contains(said, tt.said) {
			t.Errorf("%s: %q, want %q", name, said, tt.said)
		}
	}
	fails(t, write(t, "m.gguf", gemma4(key("gemma4.attention.shared_kv_layers", uint32(6))), true), "gemma4.attention.shared_kv_layers is 6, and there are 6 layers")
}

func TestCachesTheParserKnows(t *testing.T) {
	for name, f := range map[string]sample.File{
		"mamba": tiny("mamba", key("mamba.ssm.conv_kernel", uint32(4)), key("mamba.ssm.inner_size", uint32(32)), key("mamba.ssm.state_size", uint32(4)),
			key("mamba.attention.head_count", nil), key("mamba.attention.head_count_kv", nil)),
		"rwkv6": tiny("rwkv6", key("rwkv6.wkv.head_size", uint32(8)), key("rwkv6.attention.head_count", nil), key("rwkv6.attention.head_count_kv", nil)),
		"bert":  tiny("bert", key("bert.attention.causal", false)),
	} {
		path := write(t, "m.gguf", f, true)
		need := of(t, mustRead(t, path), estimate.Serving{Context: 4096, Sequences: 1})
		if got := theirs(t, path, 4096).Devices[1].KVCache.Sum(); cluster.Bytes(got) != need.Whole.KVCache {
			t.Errorf("%s: %d, and the parser has %d", name, need.Whole.KVCache, got)
		}
	}
}

func TestTied(t *testing.T) {
	f := tiny("llama")
	f.Tensors = f.Tensors[:len(f.Tensors)-2] // output.weight and output_norm.weight
	m := mustRead(t, write(t, "m.gguf", f, false))
	if !m.Architecture.Tied || m.Weights.Head != 0 || m.Weights.Embedding != 64*100*2 {
		t.Errorf("tied %v, head %d, embedding %d", m.Architecture.Tied, m.Weights.Head, m.Weights.Embedding)
	}
	// llama.cpp keeps the embedding in the node's memory and its copy as head on the device.
	need := of(t, m, estimate.Serving{})
	if want := m.Weights.Layers + m.Weights.Embedding; need.Whole.Weights != want {
		t.Errorf("the device holds %d bytes of weights, not %d", need.Whole.Weights, want)
	}
	if total := of(t, m, estimate.Serving{}).HostOnly; total < m.Weights.Total() || total > m.Weights.Total()+(200<<20) {
		t.Errorf("without a device it takes %d: is the embedding counted twice?", total)
	}
}

func TestWeightsOnly(t *testing.T) {
	renamed := func(prefix string) sample.File {
		f := tiny("t5")
		for i := range f.Tensors {
			f.Tensors[i].Name = strings.Replace(f.Tensors[i].Name, "blk.", prefix, 1)
		}
		return f
	}
	image := sample.File{Keys: []sample.Key{key("general.architecture", "flux")}, Tensors: []sample.Tensor{{Name: "double_blocks.0.img_attn.qkv.weight", Type: parser.GGMLTypeQ8_0, Dims: []uint64{64, 64}}}}
	tests := map[string]struct {
		file                  sample.File
		architecture, layered bool
		said                  string
	}{
		"an image model":      {image, false, false, "flux is not a known language model, or the file lacks flux.block_count"},
		"a projector":         {tiny("clip"), false, false, "a projector"},
		"an adapter":          {tiny("llama", key("general.type", "adapter")), false, false, "an adapter"},
		"no architecture":     {tiny("llama", key("general.architecture", nil)), false, false, "names no architecture"},
		"no heads":            {tiny("llama", key("llama.attention.head_count", nil)), false, false, "lacks llama.attention.head_count"},
		"no width":            {tiny("llama", key("llama.embedding_length", nil)), false, false, "lacks llama.embedding_length"},
		"texts of any length": {tiny("bert", key("bert.attention.causal", false), key("bert.context_length", nil)), false, false, "lacks bert.context_length"},
		"an encoder":          {renamed("enc.blk."), true, false, "not divided layer by layer"},
		"other names":         {renamed("layers."), true, false, "No tensor is in a layer"},
	}
	for name, test := range tests {
		m := mustRead(t, write(t, "m.gguf", test.file, true))
		if got := m.Architecture != nil; got != test.architecture {
			t.Errorf("%s: architecture %v", name, m.Architecture)
		}
		if got := m.Layered != nil; got != test.layered {
			t.Errorf("%s: layered %v", name, m.Layered)
		}
		if m.Weights.Total() == 0 || !strings.Contains(strings.Join(m.Assumed, " "), test.said) {
			t.Errorf("%s: %d bytes, assumed %q", name, m.Weights.Total(), m.Assumed)
		}
	}
}

func TestQuantised(t *testing.T) {
	for want, f := range map[string]sample.File{
		"Q5_K_M": tiny("llama", key("general.file_type", uint32(17))),
		"":       tiny("llama"), // most bytes are not quantised
		"Q8_0":   {Tensors: []sample.Tensor{{Name: "a", Type: parser.GGMLTypeF32, Dims: []uint64{32}}, {Name: "b", Type: parser.GGMLTypeQ8_0, Dims: []uint64{32, 100}}}},
	} {
		if got := mustRead(t, write(t, "m.gguf", f, true)).Weights.Quantised; got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestInvalidFilesAreRefused(t *testing.T) {
	far := tiny("llama")
	far.Tensors[1].Name = "blk.2.attn_norm.weight"
	tests := map[string]struct {
		file sample.File
		said string
	}{
		"too many layers":      {tiny("llama", key("llama.block_count", uint64(1)<<40)), "llama.block_count is 1099511627776; at most 1024 is allowed"},
		"layers as text":       {tiny("llama", key("llama.block_count", "two")), "llama.block_count must be a whole number"},
		"heads of no width":    {tiny("llama", key("llama.attention.head_count", uint32(128))), "llama.attention.head_count is 128, more than llama.embedding_length"},
		"no KV heads":          {tiny("llama", key("llama.attention.head_count_kv", uint32(0))), "llama.attention.head_count_kv is 0"},
		"KV heads of one":      {tiny("llama", key("llama.attention.head_count_kv", []uint32{2})), "has numbers for 1 of 2 layers"},
		"too many KV heads":    {tiny("llama", key("llama.attention.head_count_kv", []uint32{2, 1 << 20})), "is 1048576 for layer 1; at most 16384 is allowed"},
		"a window as text":     {tiny("llama", key("llama.attention.sliding_window", "wide")), "llama.attention.sliding_window must be a whole number"},
		"causal as number":     {tiny("llama", key("llama.attention.causal", uint32(1))), "llama.attention.causal must be true or false"},
		"pooling as text":      {tiny("llama", key("llama.pooling_type", "last")), "llama.pooling_type must be a small whole number"},
		"a layer too far":      {far, `tensor "blk.2.attn_norm.weight" is of layer 2, but the file says that there are 2`},
		"statistics":           {tiny("imatrix"), "statistics for quantising"},
		"a vocabulary alone":   {sample.File{Keys: tiny("llama").Keys}, "it has no tensors, so the size of its weights is not known"},
		"alignment of nothing": {tiny("llama", key("general.alignment", uint32(0))), "general.alignment must be a power of 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { fails(t, write(t, "m.gguf", test.file, false), test.said) })
	}
}
