package sample

import (
	"fmt"

	parser "github.com/gpustack/gguf-parser-go"
)

// llama is the sizes of a dense model with grouped heads.
type llama struct {
	layers, hidden, wide, heads, kvHeads, vocab uint64
	// of returns the type of a matrix.
	of func(name string, layer uint64) parser.GGMLType
}

func (l llama) file(name string, fileType uint32) File {
	const arch = "llama"
	f := newModel(arch, name, fileType, sizes{layers: uint32(l.layers), context: 131072, hidden: uint32(l.hidden), wide: uint32(l.wide), heads: uint32(l.heads), kvHeads: uint32(l.kvHeads)},
		Key{"rope.dimension_count", uint32(128)},
		Key{"rope.freq_base", float32(500000)},
		Key{"vocab_size", uint32(l.vocab)},
		Key{"tokenizer.ggml.model", "gpt2"},
		Key{"tokenizer.ggml.tokens", []string{"a", "b"}},
	)
	kv := l.hidden / l.heads * l.kvHeads
	f.add(parser.GGMLTypeF32, "rope_freqs.weight", 64)
	f.add(l.of("token_embd", 0), "token_embd.weight", l.hidden, l.vocab)
	for i := range l.layers {
		f.add(parser.GGMLTypeF32, blk(i, "attn_norm"), l.hidden)
		for _, m := range []struct {
			name    string
			in, out uint64
		}{
			{"attn_q", l.hidden, l.hidden}, {"attn_k", l.hidden, kv}, {"attn_v", l.hidden, kv}, {"attn_output", l.hidden, l.hidden},
			{"ffn_gate", l.hidden, l.wide}, {"ffn_up", l.hidden, l.wide}, {"ffn_down", l.wide, l.hidden},
		} {
			f.add(l.of(m.name, i), blk(i, m.name), m.in, m.out)
		}
		f.add(parser.GGMLTypeF32, blk(i, "ffn_norm"), l.hidden)
	}
	f.add(parser.GGMLTypeF32, "output_norm.weight", l.hidden)
	f.add(l.of("output", 0), "output.weight", l.hidden, l.vocab)
	return f
}

// Llama8B returns Llama 3.1 8B in Q8_0.
func Llama8B() File {
	all := func(string, uint64) parser.GGMLType { return parser.GGMLTypeQ8_0 }
	return llama{layers: 32, hidden: 4096, wide: 14336, heads: 32, kvHeads: 8, vocab: 128256, of: all}.file("Llama 3.1 8B", 7)
}

// Llama70B returns Llama 3.3 70B in Q4_K_M, which has more bits for some matrices in the
// first, the last and every third layer.
func Llama70B() File {
	const layers = 80
	of := func(name string, i uint64) parser.GGMLType {
		more := i < layers/8 || i >= 7*layers/8 || (i-layers/8)%3 == 2
		switch {
		case name == "output", name == "ffn_down" && more, name == "attn_v" && more:
			return parser.GGMLTypeQ6_K
		case name == "attn_v":
			return parser.GGMLTypeQ5_K
		}
		return parser.GGMLTypeQ4_K
	}
	return llama{layers: layers, hidden: 8192, wide: 28672, heads: 64, kvHeads: 8, vocab: 128256, of: of}.file("Llama 3.3 70B", 15)
}

func (f *File) add(kind parser.GGMLType, name string, dims ...uint64) {
	f.Tensors = append(f.Tensors, Tensor{Name: name, Type: kind, Dims: dims})
}

func blk(i uint64, name string) string  { return bare(i, name) + ".weight" }
func bias(i uint64, name string) string { return bare(i, name) + ".bias" }
func bare(i uint64, name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }
