package hf_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/hf"
	"github.com/berth-project/berth/internal/estimate/internal/doctable"
)

// kept is what a model keeps of each token, if no layer has a window, and of each sequence.
type kept struct{ token, state cluster.Bytes }

// The figures follow from the published sizes: for each layer with attention, key heads ×
// (key + value) × 2 bytes, or the latent and the index; for each layer with a state, the
// numbers of its convolution in 16 bits and of its matrix in 16 or 32 bits.
var keptByModel = map[string]kept{
	"qwen3-next-80b":       {12 * 2 * 2 * 256 * 2, 36 * (3*8192*2 + 32*128*128*2)},
	"qwen3.5-35b-a3b":      {10 * 2 * 2 * 256 * 2, 30 * (3*8192*2 + 32*128*128*4)},
	"qwen3.5-27b":          {16 * 4 * 2 * 256 * 2, 48 * (3*10240*2 + 48*128*128*4)},
	"nemotron-h-8b":        {4 * 8 * 2 * 128 * 2, 24 * (3*(8192+2*8*128)*2 + 8192*128*4)},
	"nemotron-3-nano":      {6 * 2 * 2 * 128 * 2, 23 * (3*(4096+2*8*128)*2 + 4096*128*4)},
	"nemotron-3-ultra":     {12 * 2 * 2 * 128 * 2, 48 * (3*(16384+2*8*128)*2 + 16384*128*4)},
	"granite-4.0-h-small":  {4 * 8 * 2 * 128 * 2, 36 * (3*(8192+2*128)*2 + 8192*128*2)},
	"jamba-1.5-mini":       {4 * 8 * 2 * 128 * 2, 28 * (3*8192*2 + 8192*16*4)},
	"falcon-h1-7b":         {44 * 2 * 2 * 128 * 2, 44 * (3*(3072+2*256)*2 + 3072*256*2)},
	"kimi-linear-48b":      {7 * 576 * 2, 20 * (3*3*32*128*2 + 32*128*128*4)},
	"kimi-k3":              {24 * 576 * 2, 69 * (3*3*96*128*2 + 96*128*128*4)},
	"mamba-2.8b":           {0, 64 * (3*5120*2 + 5120*16*4)},
	"codestral-mamba-7b":   {0, 64 * (3*(8192+2*8*128)*2 + 8192*128*4)},
	"lfm2-1.2b":            {6 * 8 * 2 * 64 * 2, 10 * 2 * 2048 * 2},
	"rwkv-6-7b":            {0, 32 * 4096 * (2 + 64) * 4},
	"bamba-9b":             {3 * 8 * 2 * 128 * 2, 29 * (3*(8192+2*128)*2 + 8192*128*2)},
	"zamba2-7b":            {13 * 32 * 2 * 224 * 2, 81 * (3*(7168+2*2*64)*2 + 7168*64*2)},
	"ring-mini-linear":     {4 * 4 * 2 * 128 * 2, 16 * 16 * 128 * 128 * 4},
	"deepseek-v2-lite":     {27 * 576 * 2, 0},
	"kimi-k2":              {61 * 576 * 2, 0},
	"deepseek-v3.2":        {61 * (576*2 + 132), 0},
	"glm-5":                {78 * (576*2 + 132), 0},
	"glm-5.2":              {78*576*2 + 21*132, 0},
	"minicpm3-4b":          {62 * 40 * 2 * 96 * 2, 0},
	"mistral-small-4":      {36 * 320 * 2, 0},
	"gemma-2-9b":           {42 * 8 * 2 * 256 * 2, 0},
	"gemma-3n-e4b":         {20 * 2 * 2 * 256 * 2, 0},
	"gemma-4-e4b":          {20*2*2*256*2 + 4*2*2*512*2, 0},
	"gemma-4-26b-a4b":      {25*8*2*256*2 + 5*2*2*512*2, 0},
	"llama-4-scout":        {48 * 8 * 2 * 128 * 2, 0},
	"minimax-m1":           {10 * 8 * 2 * 128 * 2, 70 * 64 * 128 * 128 * 4},
	"minimax-m2":           {62 * 8 * 2 * 128 * 2, 0},
	"minimax-m3":           {60*4*2*128*2 + 57*128*2, 0},
	"mimo-v2-flash":        {9*4*320*2 + 39*8*320*2, 0},
	"exaone-4-32b":         {64 * 8 * 2 * 128 * 2, 0},
	"dbrx":                 {40 * 8 * 2 * 128 * 2, 0},
	"mpt-30b":              {48 * 64 * 2 * 112 * 2, 0},
	"llama-3.2-11b-vision": {32 * 8 * 2 * 128 * 2, 0},
	"bge-m3":               {0, 0},
	"modernbert-large":     {0, 0},
	"whisper-large-v3":     {32 * 20 * 2 * 64 * 2, 0},
	"step3":                {61 * 2 * 256 * 2, 0},
	"nemotron-super-49b":   {49 * 8 * 2 * 128 * 2, 0},
	"chatglm3-6b":          {28 * 2 * 2 * 128 * 2, 0},
}

// withConfig returns the model with this configuration and this many bytes of weights.
func withConfig(t *testing.T, config []byte, weights int64) *estimate.Model {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "config.json", config)
	write(t, dir, "model.safetensors.index.json", fmt.Appendf(nil, `{"metadata":{"total_size":%d},"weight_map":{"w":"model-00001-of-00001.safetensors"}}`, weights))
	m, err := hf.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTableOfArchitectures(t *testing.T) {
	files, err := filepath.Glob("testdata/architectures/*.json")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	vllm, err := backend.Find("vllm")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| model | type | bytes per token | state, MiB | 1 × 32,768 tokens in vllm, GiB |\n|---|---|---|---|---|\n")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := withConfig(t, text, 8<<30)
		if m.Architecture == nil || m.Architecture.Bound != nil {
			t.Errorf("%s: %s", name, m.Assumed)
			continue
		}
		var got kept
		if got.token, err = m.KVPerToken(estimate.Serving{}); err != nil {
			t.Fatal(err)
		}
		for _, c := range m.Architecture.Caches {
			got.state += c.State
		}
		if want, known := keptByModel[name]; known && got != want {
			t.Errorf("%s keeps %+v, want %+v", name, got, want)
		}
		s := vllm.WithDefaults(m, estimate.Serving{Tensor: 1}, backend.Accelerator{Product: "NVIDIA-H100-80GB-HBM3", Type: "cuda", Memory: 80 << 30})
		at, err := m.KVAt(s, 32768)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&table, "| %s | %s | %d | %s | %s |\n", name, m.Architecture.Name, got.token, mebibytes(got.state), gib(at))
	}
	doctable.Check(t, "architectures", table.String())
}

func mebibytes(b cluster.Bytes) string {
	if b == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", float64(b)/(1<<20))
}
