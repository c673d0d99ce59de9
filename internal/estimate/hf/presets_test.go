package hf_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/hf"
	"github.com/berth-project/berth/internal/estimate/hf/sample"
	"github.com/berth-project/berth/internal/estimate/internal/doctable"
)

// read returns the model of a configuration, with arbitrary weights.
func read(t *testing.T, config []byte) *estimate.Model {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "config.json", config)
	write(t, dir, "model.safetensors", sample.Header([]sample.Tensor{{Name: "model.layers.0.mlp.up_proj.weight", Dtype: "BF16", Shape: []int64{8, 8}}}))
	m, err := hf.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Architecture == nil {
		t.Fatalf("the architecture is not known: %q", m.Assumed)
	}
	return m
}

func write(t *testing.T, dir, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The figures are from published tables of these models.
func TestBytesPerTokenOfKnownModels(t *testing.T) {
	tests := map[string]struct {
		perToken   cluster.Bytes
		maxContext int
	}{
		"phi-3-mini-128k":              {393216, 131072},
		"phi-3-medium-128k":            {204800, 131072},
		"phi-4":                        {204800, 16384},
		"phi-4-mini":                   {131072, 131072},
		"mistral-7b":                   {131072, 32768},
		"falcon-7b":                    {8192, 2048},
		"falcon-40b":                   {122880, 2048},
		"llama-3.1-8b":                 {131072, 131072},
		"llama-3.3-70b":                {327680, 131072},
		"deepseek-v3":                  {70272, 163840},
		"deepseek-r1-distill-qwen-14b": {196608, 131072},
		"qwen2.5-coder-7b":             {57344, 32768},
		"qwen2.5-coder-32b":            {262144, 32768},
		"gpt-oss-20b":                  {49152, 131072},
		"gpt-oss-120b":                 {73728, 131072},
		"gemma-3-4b":                   {139264, 131072},
		"gemma-3-27b":                  {507904, 131072},
		"ministral-3-3b":               {106496, 262144},
		"ministral-3-8b":               {139264, 262144},
		"ministral-3-14b":              {163840, 262144},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := sample.Config(name)
			if err != nil {
				if text, err = os.ReadFile("testdata/configs/" + name + ".json"); err != nil {
					t.Fatal(err)
				}
			}
			m := read(t, text)
			got, err := m.KVPerToken(estimate.Serving{})
			if err != nil {
				t.Fatal(err)
			}
			if got != want.perToken || m.Architecture.MaxContext != want.maxContext {
				t.Errorf("%d bytes a token and %d tokens, want %d and %d", got, m.Architecture.MaxContext, want.perToken, want.maxContext)
			}
			full, err := m.KVAt(estimate.Serving{}, want.maxContext)
			if err != nil {
				t.Fatal(err)
			}
			bound := got * cluster.Bytes(want.maxContext)
			if windowed := m.Architecture.HasWindows(); full > bound || (full < bound) != windowed {
				t.Errorf("the cache of %d tokens is %d, the bound %d, windows: %v", want.maxContext, full, bound, windowed)
			}
		})
	}
}

// The table has contexts at which the bound and the true size differ little and much.
func TestTableOfWindows(t *testing.T) {
	var table strings.Builder
	table.WriteString("| model | bytes per token, all layers | 8,192 tokens, bound | kept | 131,072 tokens, bound | kept |\n|---|---|---|---|---|---|\n")
	for _, name := range []string{"gemma-3-4b", "gemma-3-27b", "gpt-oss-20b", "gpt-oss-120b"} {
		text, err := sample.Config(name)
		if err != nil {
			t.Fatal(err)
		}
		m := read(t, text)
		bound, err := m.KVPerToken(estimate.Serving{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&table, "| %s | %d |", name, bound)
		for _, context := range []int{8192, 131072} {
			kept, err := m.KVAt(estimate.Serving{}, context)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&table, " %d | %d |", bound*cluster.Bytes(context)>>20, kept>>20)
		}
		table.WriteString("\n")
	}
	doctable.Check(t, "windows", table.String())
}

// The expected figures are computed from the number of layers without and with a window,
// and the bytes per token and layer.
func TestWindowsHoldLess(t *testing.T) {
	tests := map[string]struct{ full, windowed, window, perLayer cluster.Bytes }{
		"gemma-3-4b":   {5, 29, 1024, 2 * 4 * 256 * 2},
		"gemma-3-27b":  {10, 52, 1024, 2 * 16 * 128 * 2},
		"gpt-oss-20b":  {12, 12, 128, 2 * 8 * 64 * 2},
		"gpt-oss-120b": {18, 18, 128, 2 * 8 * 64 * 2},
	}
	for name, l := range tests {
		text, err := sample.Config(name)
		if err != nil {
			t.Fatal(err)
		}
		m := read(t, text)
		for _, context := range []cluster.Bytes{100, 8192, 131072} {
			got, err := m.KVAt(estimate.Serving{}, int(context))
			if err != nil {
				t.Fatal(err)
			}
			if want := l.perLayer * (l.full*context + l.windowed*min(context, l.window)); got != want {
				t.Errorf("%s: the cache of %d tokens is %d, want %d", name, context, got, want)
			}
		}
	}
}
