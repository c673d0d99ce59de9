package sample

import parser "github.com/gpustack/gguf-parser-go"

// The files of this file have every key and tensor that llama.cpp requires, so that the
// server can load them once Loadable has added a tokenizer.

// Llama1B returns Llama 3.2 1B in F16. Its output is the embedding.
func Llama1B() File {
	const (
		arch                             = "llama"
		layers, hidden, wide             = 16, 2048, 8192
		heads, kvHeads, head, vocabulary = 32, 8, 64, 128256
	)
	f := newModel(arch, "Llama 3.2 1B", 1, sizes{layers: layers, context: 131072, hidden: hidden, wide: wide, heads: heads, kvHeads: kvHeads, head: head},
		Key{"attention.layer_norm_rms_epsilon", float32(1e-5)},
		Key{"rope.dimension_count", uint32(head)},
		Key{"rope.freq_base", float32(500000)},
		Key{"vocab_size", uint32(vocabulary)},
	)
	const matrix = parser.GGMLTypeF16
	f.add(parser.GGMLTypeF32, "rope_freqs.weight", head/2)
	f.add(matrix, "token_embd.weight", hidden, vocabulary)
	for i := range uint64(layers) {
		f.attention(matrix, i, hidden, heads*head, kvHeads*head)
		f.feedForward(matrix, i, hidden, wide)
	}
	f.add(parser.GGMLTypeF32, "output_norm.weight", hidden)
	return f
}

// Qwen7B returns Qwen2.5 7B in Q8_0. Its queries, keys and values have a bias.
func Qwen7B() File {
	const (
		arch                             = "qwen2"
		layers, hidden, wide             = 28, 3584, 18944
		heads, kvHeads, head, vocabulary = 28, 4, 128, 152064
	)
	f := newModel(arch, "Qwen2.5 7B", 7, sizes{layers: layers, context: 32768, hidden: hidden, wide: wide, heads: heads, kvHeads: kvHeads},
		Key{"attention.layer_norm_rms_epsilon", float32(1e-6)},
		Key{"rope.freq_base", float32(1000000)},
	)
	const matrix = parser.GGMLTypeQ8_0
	f.add(matrix, "token_embd.weight", hidden, vocabulary)
	for i := range uint64(layers) {
		f.attention(matrix, i, hidden, heads*head, kvHeads*head)
		f.add(parser.GGMLTypeF32, bias(i, "attn_q"), heads*head)
		f.add(parser.GGMLTypeF32, bias(i, "attn_k"), kvHeads*head)
		f.add(parser.GGMLTypeF32, bias(i, "attn_v"), kvHeads*head)
		f.feedForward(matrix, i, hidden, wide)
	}
	f.add(parser.GGMLTypeF32, "output_norm.weight", hidden)
	f.add(matrix, "output.weight", hidden, vocabulary)
	return f
}

// Gemma4B returns Gemma 3 4B in Q4_0. Five of six layers have a window of 1024 tokens.
func Gemma4B() File {
	const (
		arch                             = "gemma3"
		layers, hidden, wide             = 34, 2560, 10240
		heads, kvHeads, head, vocabulary = 8, 4, 256, 262144
	)
	f := newModel(arch, "Gemma 3 4B", 2, sizes{layers: layers, context: 131072, hidden: hidden, wide: wide, heads: heads, kvHeads: kvHeads, head: head},
		Key{"attention.sliding_window", uint32(1024)},
		Key{"attention.layer_norm_rms_epsilon", float32(1e-6)},
		Key{"rope.freq_base", float32(1000000)},
	)
	const plain, matrix = parser.GGMLTypeF32, parser.GGMLTypeQ4_0
	f.add(parser.GGMLTypeQ8_0, "token_embd.weight", hidden, vocabulary)
	for i := range uint64(layers) {
		f.attention(matrix, i, hidden, heads*head, kvHeads*head)
		f.add(plain, blk(i, "attn_q_norm"), head)
		f.add(plain, blk(i, "attn_k_norm"), head)
		f.add(plain, blk(i, "post_attention_norm"), hidden)
		f.feedForward(matrix, i, hidden, wide)
		f.add(plain, blk(i, "post_ffw_norm"), hidden)
	}
	f.add(plain, "output_norm.weight", hidden)
	return f
}

// Qwen30B returns Qwen3 30B A3B in Q4_0: 8 of 128 experts process a token.
func Qwen30B() File {
	const (
		arch                             = "qwen3moe"
		layers, hidden, wide, narrow     = 48, 2048, 6144, 768
		heads, kvHeads, head, vocabulary = 32, 4, 128, 151936
		experts                          = 128
	)
	f := newModel(arch, "Qwen3 30B A3B", 2, sizes{layers: layers, context: 40960, hidden: hidden, wide: wide, heads: heads, kvHeads: kvHeads, head: head},
		Key{"expert_feed_forward_length", uint32(narrow)},
		Key{"expert_count", uint32(experts)},
		Key{"expert_used_count", uint32(8)},
		Key{"attention.layer_norm_rms_epsilon", float32(1e-6)},
		Key{"rope.freq_base", float32(1000000)},
	)
	const plain, matrix = parser.GGMLTypeF32, parser.GGMLTypeQ4_0
	f.add(matrix, "token_embd.weight", hidden, vocabulary)
	for i := range uint64(layers) {
		f.attention(matrix, i, hidden, heads*head, kvHeads*head)
		f.add(plain, blk(i, "attn_q_norm"), head)
		f.add(plain, blk(i, "attn_k_norm"), head)
		f.add(plain, blk(i, "ffn_norm"), hidden)
		f.add(plain, blk(i, "ffn_gate_inp"), hidden, experts)
		f.experts(matrix, i, hidden, narrow, experts)
	}
	f.add(plain, "output_norm.weight", hidden)
	f.add(parser.GGMLTypeQ6_K, "output.weight", hidden, vocabulary)
	return f
}

// GPTOSS20B returns gpt-oss 20B with experts in MXFP4. Every second layer has a window of
// 128 tokens.
func GPTOSS20B() File {
	const (
		arch                             = "gpt-oss"
		layers, hidden, wide, experts    = 24, 2880, 2880, 32
		heads, kvHeads, head, vocabulary = 64, 8, 64, 201088
	)
	f := newModel(arch, "gpt-oss 20B", 38, sizes{layers: layers, context: 131072, hidden: hidden, wide: wide, heads: heads, kvHeads: kvHeads, head: head},
		Key{"expert_feed_forward_length", uint32(wide)},
		Key{"expert_count", uint32(experts)},
		Key{"expert_used_count", uint32(4)},
		Key{"attention.sliding_window", uint32(128)},
		Key{"attention.layer_norm_rms_epsilon", float32(1e-5)},
		Key{"rope.freq_base", float32(150000)},
	)
	const plain, matrix = parser.GGMLTypeF32, parser.GGMLTypeQ8_0
	f.add(matrix, "token_embd.weight", hidden, vocabulary)
	for i := range uint64(layers) {
		f.attention(matrix, i, hidden, heads*head, kvHeads*head)
		f.add(plain, bias(i, "attn_q"), heads*head)
		f.add(plain, bias(i, "attn_k"), kvHeads*head)
		f.add(plain, bias(i, "attn_v"), kvHeads*head)
		f.add(plain, bias(i, "attn_output"), hidden)
		f.add(plain, blk(i, "attn_sinks"), heads)
		f.add(plain, blk(i, "post_attention_norm"), hidden)
		f.add(plain, blk(i, "ffn_gate_inp"), hidden, experts)
		f.add(plain, bias(i, "ffn_gate_inp"), experts)
		f.experts(parser.GGMLTypeMXFP4, i, hidden, wide, experts)
		f.add(plain, bias(i, "ffn_gate_exps"), wide, experts)
		f.add(plain, bias(i, "ffn_up_exps"), wide, experts)
		f.add(plain, bias(i, "ffn_down_exps"), hidden, experts)
	}
	f.add(plain, "output_norm.weight", hidden)
	f.add(matrix, "output.weight", hidden, vocabulary)
	return f
}

// attention adds the matrices of plain attention and the norm before them.
func (f *File) attention(kind parser.GGMLType, layer, hidden, queries, keys uint64) {
	f.add(parser.GGMLTypeF32, blk(layer, "attn_norm"), hidden)
	f.add(kind, blk(layer, "attn_q"), hidden, queries)
	f.add(kind, blk(layer, "attn_k"), hidden, keys)
	f.add(kind, blk(layer, "attn_v"), hidden, keys)
	f.add(kind, blk(layer, "attn_output"), queries, hidden)
}

// feedForward adds the matrices of an MLP and the norm before them.
func (f *File) feedForward(kind parser.GGMLType, layer, hidden, wide uint64) {
	f.add(parser.GGMLTypeF32, blk(layer, "ffn_norm"), hidden)
	f.add(kind, blk(layer, "ffn_gate"), hidden, wide)
	f.add(kind, blk(layer, "ffn_up"), hidden, wide)
	f.add(kind, blk(layer, "ffn_down"), wide, hidden)
}

// experts adds the matrices of all experts of a layer.
func (f *File) experts(kind parser.GGMLType, layer, hidden, wide, experts uint64) {
	f.add(kind, blk(layer, "ffn_gate_exps"), hidden, wide, experts)
	f.add(kind, blk(layer, "ffn_up_exps"), hidden, wide, experts)
	f.add(kind, blk(layer, "ffn_down_exps"), wide, hidden, experts)
}
