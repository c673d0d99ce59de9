package sample

import parser "github.com/gpustack/gguf-parser-go"

// DeepSeekV3 returns DeepSeek V3, which has the shape of R1: latent attention and 256
// experts. All matrices are in Q4_K, except those with rows that are too short for it.
func DeepSeekV3() File {
	const (
		arch                              = "deepseek2"
		layers, dense                     = 61, 3
		hidden, wide, narrow              = 7168, 18432, 2048
		heads, experts                    = 128, 256
		queryRank, rank, rope, nope, head = 1536, 512, 64, 128, 128
		vocab                             = 129280
	)
	f := newModel(arch, "DeepSeek V3", 15, sizes{layers: layers, context: 163840, hidden: hidden, wide: wide, heads: heads, kvHeads: 1},
		Key{"expert_feed_forward_length", uint32(narrow)},
		Key{"expert_count", uint32(experts)},
		Key{"expert_used_count", uint32(8)},
		Key{"expert_shared_count", uint32(1)},
		Key{"leading_dense_block_count", uint32(dense)},
		Key{"attention.q_lora_rank", uint32(queryRank)},
		Key{"attention.kv_lora_rank", uint32(rank)},
		Key{"attention.key_length", uint32(rank + rope)},
		Key{"attention.value_length", uint32(rank)},
		Key{"attention.key_length_mla", uint32(nope + rope)},
		Key{"attention.value_length_mla", uint32(head)},
		Key{"rope.dimension_count", uint32(rope)},
		Key{"vocab_size", uint32(vocab)},
		Key{"tokenizer.ggml.model", "gpt2"},
		Key{"tokenizer.ggml.tokens", []string{"a", "b"}},
	)
	const plain, short, matrix = parser.GGMLTypeF32, parser.GGMLTypeQ8_0, parser.GGMLTypeQ4_K
	f.add(matrix, "token_embd.weight", hidden, vocab)
	for i := range uint64(layers) {
		f.add(plain, blk(i, "attn_norm"), hidden)
		f.add(matrix, blk(i, "attn_q_a"), hidden, queryRank)
		f.add(plain, blk(i, "attn_q_a_norm"), queryRank)
		f.add(matrix, blk(i, "attn_q_b"), queryRank, heads*(nope+rope))
		f.add(matrix, blk(i, "attn_kv_a_mqa"), hidden, rank+rope)
		f.add(plain, blk(i, "attn_kv_a_norm"), rank)
		f.add(short, blk(i, "attn_k_b"), nope, rank, heads)
		f.add(short, blk(i, "attn_v_b"), rank, head, heads)
		f.add(matrix, blk(i, "attn_output"), heads*head, hidden)
		if i < dense {
			f.feedForward(matrix, i, hidden, wide)
			continue
		}
		f.add(plain, bias(i, "exp_probs_b"), experts)
		f.routed(matrix, i, hidden, narrow, experts, narrow)
	}
	f.add(plain, "output_norm.weight", hidden)
	f.add(parser.GGMLTypeQ6_K, "output.weight", hidden, vocab)
	return f
}

// DeepSeekV2Lite returns DeepSeek V2 Lite in Q8_0: latent attention without compressed
// queries, and 64 experts.
func DeepSeekV2Lite() File {
	const (
		arch                        = "deepseek2"
		layers, dense               = 27, 1
		hidden, wide, narrow        = 2048, 10944, 1408
		heads, experts, shared      = 16, 64, 2
		rank, rope, nope, valueHead = 512, 64, 128, 128
		vocab                       = 102400
	)
	f := newModel(arch, "DeepSeek V2 Lite", 7, sizes{layers: layers, context: 163840, hidden: hidden, wide: wide, heads: heads, kvHeads: 1},
		Key{"expert_feed_forward_length", uint32(narrow)},
		Key{"expert_count", uint32(experts)},
		Key{"expert_used_count", uint32(6)},
		Key{"expert_shared_count", uint32(shared)},
		Key{"leading_dense_block_count", uint32(dense)},
		Key{"attention.kv_lora_rank", uint32(rank)},
		Key{"attention.key_length", uint32(rank + rope)},
		Key{"attention.value_length", uint32(rank)},
		Key{"attention.key_length_mla", uint32(nope + rope)},
		Key{"attention.value_length_mla", uint32(valueHead)},
		Key{"attention.layer_norm_rms_epsilon", float32(1e-6)},
		Key{"rope.dimension_count", uint32(rope)},
		Key{"vocab_size", uint32(vocab)},
	)
	const plain, matrix = parser.GGMLTypeF32, parser.GGMLTypeQ8_0
	f.add(matrix, "token_embd.weight", hidden, vocab)
	for i := range uint64(layers) {
		f.add(plain, blk(i, "attn_norm"), hidden)
		f.add(matrix, blk(i, "attn_q"), hidden, heads*(nope+rope))
		f.add(matrix, blk(i, "attn_kv_a_mqa"), hidden, rank+rope)
		f.add(plain, blk(i, "attn_kv_a_norm"), rank)
		f.add(matrix, blk(i, "attn_k_b"), nope, rank, heads)
		f.add(matrix, blk(i, "attn_v_b"), rank, valueHead, heads)
		f.add(matrix, blk(i, "attn_output"), heads*valueHead, hidden)
		if i < dense {
			f.feedForward(matrix, i, hidden, wide)
			continue
		}
		f.routed(matrix, i, hidden, narrow, experts, shared*narrow)
	}
	f.add(plain, "output_norm.weight", hidden)
	f.add(matrix, "output.weight", hidden, vocab)
	return f
}

// routed adds a router, experts, and a shared expert of this width.
func (f *File) routed(kind parser.GGMLType, layer, hidden, wide, experts, shared uint64) {
	f.add(parser.GGMLTypeF32, blk(layer, "ffn_norm"), hidden)
	f.add(parser.GGMLTypeF32, blk(layer, "ffn_gate_inp"), hidden, experts)
	f.experts(kind, layer, hidden, wide, experts)
	f.add(kind, blk(layer, "ffn_gate_shexp"), hidden, shared)
	f.add(kind, blk(layer, "ffn_up_shexp"), hidden, shared)
	f.add(kind, blk(layer, "ffn_down_shexp"), shared, hidden)
}
