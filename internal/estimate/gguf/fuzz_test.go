package gguf_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/gguf"
	"github.com/berth-project/berth/internal/printable"
)

// FuzzRead checks that no file makes Read or Need panic, that a model has weights and
// layers that cover them, and that all text is printable.
func FuzzRead(f *testing.F) {
	good := [][]byte{
		tiny("llama").Header(),
		tiny("ll\x1b[31mama\u202e\x9b").Header(),
		tiny("llama", key("llama.attention.head_count_kv", []uint32{0, 2})).Header(),
		tiny("gemma3", key("gemma3.attention.sliding_window", uint32(512))).Header(),
		tiny("bert", key("bert.attention.causal", false)).Header(),
		tiny("mamba", key("mamba.ssm.inner_size", uint32(32)), key("mamba.ssm.state_size", uint32(4))).Header(),
		tiny("deepseek2", key("deepseek2.attention.kv_lora_rank", uint32(8)), key("deepseek2.attention.key_length_mla", uint32(8)), key("deepseek2.attention.value_length_mla", uint32(8))).Header(),
	}
	for _, b := range good {
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	for _, test := range hostile {
		f.Add(test.file)
	}
	path := filepath.Join(f.TempDir(), "m.gguf")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := gguf.Read(path)
		if err != nil {
			if !printable.All(err.Error()) {
				t.Fatalf("%q is not printable", err)
			}
			return
		}
		for _, s := range m.Assumed {
			if !printable.All(s) {
				t.Fatalf("%q is not printable", s)
			}
		}
		if m.Weights.Total() <= 0 || m.Weights.Parameters <= 0 {
			t.Fatalf("weights of %+v", m.Weights)
		}
		if m.Layered == nil {
			return
		}
		for _, form := range []estimate.Serving{{}, {Context: 1}, {Context: 100_000, Sequences: 3, KVBits: 8}, {Context: 1 << 28}} {
			need, err := m.Layered.Need(form)
			if err != nil {
				continue
			}
			w := need.Whole
			if w.Weights <= 0 || w.KVCache < 0 || w.Activations < 0 || need.Bytes <= 0 || sum(need) < w.Total() || need.HostOnly < m.Weights.Total() || need.Host <= 0 {
				t.Fatalf("%+v: %+v, whole %d, layers %d", form, need, w.Total(), sum(need))
			}
		}
	})
}
