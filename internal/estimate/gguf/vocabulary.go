package gguf

import parser "github.com/gpustack/gguf-parser-go"

func (f *file) has(tensor string) bool {
	_, ok := f.tensor(tensor)
	return ok
}

func (f *file) tensor(name string) (tensor, bool) {
	for _, t := range f.tensors {
		if t.name == name {
			return t, true
		}
	}
	return tensor{}, false
}

// vocabulary returns the number of tokens in the vocabulary. The embedding has one row
// per token and is always right; the metadata is used if there is no embedding.
func (f *file) vocabulary(k *keys) int {
	n := k.number("vocab_size", maxVocab)
	if t, ok := f.tensor("token_embd.weight"); ok && len(t.dims) == 2 && t.dims[1] <= maxVocab {
		n = int(t.dims[1])
	}
	if tokens := f.values["tokenizer.ggml.tokens"]; n == 0 && tokens.length <= maxVocab {
		n = int(tokens.length)
	}
	k.keep("vocab_size", uint64(n))
	return n
}

// tokenizer returns the metadata that the parser needs in addition to the keys of the
// architecture.
func (f *file) tokenizer(arch string) parser.GGUFMetadataKVs {
	text := func(key, s string) parser.GGUFMetadataKV {
		return parser.GGUFMetadataKV{Key: key, ValueType: parser.GGUFMetadataValueTypeString, Value: s}
	}
	out := parser.GGUFMetadataKVs{
		text("general.type", "model"),
		text("general.architecture", arch),
		text("tokenizer.ggml.model", f.values["tokenizer.ggml.model"].text),
	}
	for _, key := range []string{"tokenizer.ggml.tokens", "tokenizer.ggml.merges"} {
		v := f.values[key]
		if v.kind != parser.GGUFMetadataValueTypeArray {
			continue
		}
		out = append(out, parser.GGUFMetadataKV{Key: key, ValueType: v.kind, Value: parser.GGUFMetadataKVArrayValue{Type: v.item, Len: min(v.length, maxVocab)}})
	}
	return out
}
