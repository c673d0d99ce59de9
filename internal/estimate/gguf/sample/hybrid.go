package sample

import (
	"slices"

	parser "github.com/gpustack/gguf-parser-go"
)

// Mamba2 returns Mamba 2 2.7B in F16. It keeps a state of fixed size and no KV cache.
func Mamba2() File {
	const (
		arch                          = "mamba2"
		layers, hidden, vocabulary    = 64, 2560, 50288
		inner, state, heads, conv, of = 5120, 128, 80, 4, 1 // of: groups
	)
	f := newModel(arch, "Mamba 2 2.7B", 1, sizes{layers: layers, context: 1048576, hidden: hidden, wide: 0},
		Key{"attention.head_count", uint32(0)},
		Key{"attention.layer_norm_rms_epsilon", float32(1e-5)},
		Key{"ssm.conv_kernel", uint32(conv)},
		Key{"ssm.inner_size", uint32(inner)},
		Key{"ssm.state_size", uint32(state)},
		Key{"ssm.time_step_rank", uint32(heads)},
		Key{"ssm.group_count", uint32(of)},
	)
	const plain, matrix = parser.GGMLTypeF32, parser.GGMLTypeF16
	f.add(matrix, "token_embd.weight", hidden, vocabulary)
	for i := range uint64(layers) {
		f.add(plain, blk(i, "attn_norm"), hidden)
		f.add(matrix, blk(i, "ssm_in"), hidden, 2*inner+2*of*state+heads)
		f.add(plain, blk(i, "ssm_conv1d"), conv, inner+2*of*state)
		f.add(plain, bias(i, "ssm_conv1d"), inner+2*of*state)
		f.add(plain, bias(i, "ssm_dt"), heads)
		f.add(plain, bare(i, "ssm_a"), 1, heads)
		f.add(plain, bare(i, "ssm_d"), 1, heads)
		f.add(plain, blk(i, "ssm_norm"), inner/of, of)
		f.add(matrix, blk(i, "ssm_out"), inner, hidden)
	}
	f.add(plain, "output_norm.weight", hidden)
	return f
}

// LFM2 returns LFM2 1.2B in F16: 6 of its 16 layers have attention, the others a short
// convolution.
func LFM2() File {
	const (
		arch                             = "lfm2"
		layers, hidden, wide, conv       = 16, 2048, 8192, 3
		heads, kvHeads, head, vocabulary = 32, 8, 64, 65536
	)
	attention := []uint64{2, 5, 8, 10, 12, 14}
	perLayer := make([]uint32, layers)
	for _, i := range attention {
		perLayer[i] = kvHeads
	}
	f := newModel(arch, "LFM2 1.2B", 1, sizes{layers: layers, context: 128000, hidden: hidden, wide: wide},
		Key{"attention.head_count", uint32(heads)},
		Key{"attention.head_count_kv", perLayer},
		Key{"attention.layer_norm_rms_epsilon", float32(1e-5)},
		Key{"shortconv.l_cache", uint32(conv)},
		Key{"rope.freq_base", float32(1000000)},
		Key{"vocab_size", uint32(vocabulary)},
	)
	const plain, matrix = parser.GGMLTypeF32, parser.GGMLTypeF16
	f.add(matrix, "token_embd.weight", hidden, vocabulary)
	f.add(plain, "token_embd_norm.weight", hidden)
	for i := range uint64(layers) {
		if slices.Contains(attention, i) {
			f.attention(matrix, i, hidden, heads*head, kvHeads*head)
			f.add(plain, blk(i, "attn_q_norm"), head)
			f.add(plain, blk(i, "attn_k_norm"), head)
		} else {
			f.add(plain, blk(i, "attn_norm"), hidden)
			f.add(plain, blk(i, "shortconv.conv"), conv, hidden)
			f.add(matrix, blk(i, "shortconv.in_proj"), hidden, 3*hidden)
			f.add(matrix, blk(i, "shortconv.out_proj"), hidden, hidden)
		}
		f.feedForward(matrix, i, hidden, wide)
	}
	return f
}
