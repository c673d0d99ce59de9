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
	f := File{Keys: []Key{
		{"general.architecture", arch},
		{"general.type", "model"},
		{"general.name", "DeepSeek V3"},
		{"general.file_type", uint32(15)},
		{arch + ".block_count", uint32(layers)},
		{arch + ".context_length", uint32(163840)},
		{arch + ".embedding_length", uint32(hidden)},
		{arch + ".feed_forward_length", uint32(wide)},
		{arch + ".expert_feed_forward_length", uint32(narrow)},
		{arch + ".expert_count", uint32(experts)},
		{arch + ".expert_used_count", uint32(8)},
		{arch + ".expert_shared_count", uint32(1)},
		{arch + ".leading_dense_block_count", uint32(dense)},
		{arch + ".attention.head_count", uint32(heads)},
		{arch + ".attention.head_count_kv", uint32(1)},
		{arch + ".attention.q_lora_rank", uint32(queryRank)},
		{arch + ".attention.kv_lora_rank", uint32(rank)},
		{arch + ".attention.key_length", uint32(rank + rope)},
		{arch + ".attention.value_length", uint32(rank)},
		{arch + ".attention.key_length_mla", uint32(nope + rope)},
		{arch + ".attention.value_length_mla", uint32(head)},
		{arch + ".rope.dimension_count", uint32(rope)},
		{arch + ".vocab_size", uint32(vocab)},
		{"tokenizer.ggml.model", "gpt2"},
		{"tokenizer.ggml.tokens", []string{"a", "b"}},
	}}
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
		f.add(plain, blk(i, "ffn_norm"), hidden)
		if i < dense {
			f.add(matrix, blk(i, "ffn_gate"), hidden, wide)
			f.add(matrix, blk(i, "ffn_up"), hidden, wide)
			f.add(matrix, blk(i, "ffn_down"), wide, hidden)
			continue
		}
		f.add(plain, blk(i, "ffn_gate_inp"), hidden, experts)
		f.add(plain, bias(i, "exp_probs_b"), experts)
		f.add(matrix, blk(i, "ffn_gate_exps"), hidden, narrow, experts)
		f.add(matrix, blk(i, "ffn_up_exps"), hidden, narrow, experts)
		f.add(matrix, blk(i, "ffn_down_exps"), narrow, hidden, experts)
		f.add(matrix, blk(i, "ffn_gate_shexp"), hidden, narrow)
		f.add(matrix, blk(i, "ffn_up_shexp"), hidden, narrow)
		f.add(matrix, blk(i, "ffn_down_shexp"), narrow, hidden)
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
	f := File{Keys: []Key{
		{"general.architecture", arch},
		{"general.type", "model"},
		{"general.name", "DeepSeek V2 Lite"},
		{"general.file_type", uint32(7)},
		{arch + ".block_count", uint32(layers)},
		{arch + ".context_length", uint32(163840)},
		{arch + ".embedding_length", uint32(hidden)},
		{arch + ".feed_forward_length", uint32(wide)},
		{arch + ".expert_feed_forward_length", uint32(narrow)},
		{arch + ".expert_count", uint32(experts)},
		{arch + ".expert_used_count", uint32(6)},
		{arch + ".expert_shared_count", uint32(shared)},
		{arch + ".leading_dense_block_count", uint32(dense)},
		{arch + ".attention.head_count", uint32(heads)},
		{arch + ".attention.head_count_kv", uint32(1)},
		{arch + ".attention.kv_lora_rank", uint32(rank)},
		{arch + ".attention.key_length", uint32(rank + rope)},
		{arch + ".attention.value_length", uint32(rank)},
		{arch + ".attention.key_length_mla", uint32(nope + rope)},
		{arch + ".attention.value_length_mla", uint32(valueHead)},
		{arch + ".attention.layer_norm_rms_epsilon", float32(1e-6)},
		{arch + ".rope.dimension_count", uint32(rope)},
		{arch + ".vocab_size", uint32(vocab)},
	}}
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
		f.add(plain, blk(i, "ffn_norm"), hidden)
		f.add(plain, blk(i, "ffn_gate_inp"), hidden, experts)
		f.experts(matrix, i, hidden, narrow, experts)
		f.add(matrix, blk(i, "ffn_gate_shexp"), hidden, shared*narrow)
		f.add(matrix, blk(i, "ffn_up_shexp"), hidden, shared*narrow)
		f.add(matrix, blk(i, "ffn_down_shexp"), shared*narrow, hidden)
	}
	f.add(plain, "output_norm.weight", hidden)
	f.add(matrix, "output.weight", hidden, vocab)
	return f
}
