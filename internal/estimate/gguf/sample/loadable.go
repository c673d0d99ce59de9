package sample

import (
	"fmt"
	"slices"
	"strings"
)

// Loadable returns the file with everything that llama.cpp requires in addition to the
// keys that Berth reads: the epsilon of the norms, and a tokenizer with one token for each
// row of the embedding. The first 256 tokens are the bytes; the others are placeholders.
func (f File) Loadable() File {
	arch, vocabulary := "", uint64(0)
	f.Keys = slices.DeleteFunc(slices.Clone(f.Keys), func(k Key) bool {
		if k.Name == "general.architecture" {
			arch = k.Value.(string)
		}
		return strings.HasPrefix(k.Name, "tokenizer.")
	})
	for _, t := range f.Tensors {
		if t.Name == "token_embd.weight" {
			vocabulary = t.Dims[1]
		}
	}
	const epsilon = ".attention.layer_norm_rms_epsilon"
	if !slices.ContainsFunc(f.Keys, func(k Key) bool { return k.Name == arch+epsilon }) {
		f.Keys = append(f.Keys, Key{arch + epsilon, float32(1e-5)})
	}
	tokens, types := make([]string, vocabulary), make([]int32, vocabulary)
	for i := range tokens {
		tokens[i], types[i] = placeholder(i), normalToken
	}
	last := uint32(vocabulary - 1)
	types[last] = controlToken
	f.Keys = append(f.Keys,
		Key{"tokenizer.ggml.model", "gpt2"},
		Key{"tokenizer.ggml.pre", "default"},
		Key{"tokenizer.ggml.tokens", tokens},
		Key{"tokenizer.ggml.token_type", types},
		Key{"tokenizer.ggml.merges", []string{tokens['t'] + " " + tokens['h']}},
		Key{"tokenizer.ggml.bos_token_id", last},
		Key{"tokenizer.ggml.eos_token_id", last},
	)
	return f
}

// Types of tokens in a GGUF file.
const (
	normalToken  int32 = 1
	controlToken int32 = 3
)

// placeholder returns the text of a token. As in GPT-2, a byte that is not a visible
// character is written as a rune above 255.
func placeholder(i int) string {
	switch {
	case i > 255:
		return fmt.Sprintf("<%d>", i)
	case i >= '!' && i <= '~' || i >= 0xa1 && i <= 0xac || i >= 0xae:
		return string(rune(i))
	}
	hidden := 0 // bytes before it that are not visible either
	for b := range i {
		if b < '!' || b > '~' && b < 0xa1 || b == 0xad {
			hidden++
		}
	}
	return string(rune(256 + hidden))
}
