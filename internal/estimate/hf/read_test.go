package hf_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/hf"
	"github.com/berth-project/berth/internal/estimate/hf/sample"
)

// The parts are computed from the published shapes.
func TestWeightsOfKnownModels(t *testing.T) {
	tests := map[string]estimate.Weights{
		"llama-3.1-8b": {
			Layers:    32 * 2 * (2*4096*4096 + 2*1024*4096 + 3*14336*4096),
			Embedding: 2 * 128256 * 4096, Head: 2 * 128256 * 4096, Replicated: 2 * (2*32 + 1) * 4096,
			Parameters: 8_030_261_248, Bits: 1600, Plain: 16_060_522_496,
		},
		"llama-3.2-1b": {
			Layers:    16 * 2 * (2*2048*2048 + 2*512*2048 + 3*8192*2048),
			Embedding: 2 * 128256 * 2048, Replicated: 2 * (2*16 + 1) * 2048,
			Parameters: 1_235_814_400, Bits: 1600, Plain: 2_471_628_800,
		},
		"llama-3.3-70b": {
			Layers:    80 * 2 * (2*8192*8192 + 2*1024*8192 + 3*28672*8192),
			Embedding: 2 * 128256 * 8192, Head: 2 * 128256 * 8192, Replicated: 2 * (2*80 + 1) * 8192,
			Parameters: 70_553_706_496, Bits: 1600, Plain: 141_107_412_992,
		},
	}
	for name, want := range tests {
		dir := t.TempDir()
		if err := sample.Write(dir, name); err != nil {
			t.Fatal(err)
		}
		m, err := hf.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, m.Weights); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
		if m.Weights.Total() != 2*cluster.Bytes(want.Parameters) {
			t.Errorf("%s: %d bytes for %d parameters", name, m.Weights.Total(), want.Parameters)
		}
	}
}

// The file has its full size, as a sparse file. Only the header is read.
func TestFullSizeNeedsNoAssumption(t *testing.T) {
	dir := t.TempDir()
	if err := sample.Write(dir, "llama-3.1-8b"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "model.safetensors")
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := hf.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Assumed) != 1 || !strings.Contains(m.Assumed[0], "less data than its header says") {
		t.Errorf("a header without data assumes %q", m.Assumed)
	}
	if err := os.Truncate(path, st.Size()+16_060_522_496); err != nil {
		t.Fatal(err)
	}
	m, err = hf.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Weights.Total() != 16_060_522_496 || m.Assumed != nil {
		t.Errorf("%d bytes, assumed %q", m.Weights.Total(), m.Assumed)
	}
}

func TestLatentMixtureInFP8(t *testing.T) {
	dir := t.TempDir()
	if err := sample.Write(dir, "deepseek-v3"); err != nil {
		t.Fatal(err)
	}
	m, err := hf.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := m.Weights
	// 671.0 billion parameters of one byte, except embedding and head, and a scale for each 16,384 parameters.
	if w.Parameters != 671_026_419_200 || w.Quantised != "fp8" || w.Bits < 800 || w.Bits > 810 {
		t.Errorf("weights are %+v", w)
	}
	if w.Embedding != 2*129280*7168 || w.Head != w.Embedding {
		t.Errorf("embedding %d, head %d", w.Embedding, w.Head)
	}
	// The projections into the latent are whole on every device.
	if low := cluster.Bytes(61 * 7168 * (1536 + 576)); w.Replicated < low || w.Replicated > low+low/2 {
		t.Errorf("replicated %d", w.Replicated)
	}
	want := &estimate.Architecture{
		Name: "DeepseekV3ForCausalLM", Layers: 61, Hidden: 7168, Intermediate: 18432, Width: 2048, Heads: 128, KVHeads: 128,
		HeadDim: 192, ValueDim: 128, Latent: &estimate.Latent{Rank: 512, Rope: 64}, Vocab: 129280,
		MaxContext: 163840, Experts: 256, Active: 8,
	}
	if d := cmp.Diff(want, m.Architecture); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestMXFP4CountsWhatIsStored(t *testing.T) {
	for name, want := range map[string]struct {
		bytes      cluster.Bytes
		parameters int64
	}{
		// The total sizes of the published indexes, and 20.9 and 116.8 billion parameters.
		"gpt-oss-20b":  {13_761_264_768, 20_914_757_184},
		"gpt-oss-120b": {65_248_815_744, 116_829_156_672},
	} {
		dir := t.TempDir()
		if err := sample.Write(dir, name); err != nil {
			t.Fatal(err)
		}
		m, err := hf.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if m.Weights.Total() != want.bytes || m.Weights.Parameters != want.parameters || m.Weights.Quantised != "mxfp4" {
			t.Errorf("%s: %d bytes, %+v", name, m.Weights.Total(), m.Weights)
		}
	}
}

func TestVisionTowerIsOnEveryDevice(t *testing.T) {
	dir := t.TempDir()
	if err := sample.Write(dir, "gemma-3-4b"); err != nil {
		t.Fatal(err)
	}
	m, err := hf.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	// 27 layers of 15.2 million parameters each, and 4.7 million parameters of patches and positions.
	if r := m.Weights.Replicated; r < 2*412_000_000 || r > 2*425_000_000 {
		t.Errorf("replicated %d", r)
	}
	if m.Weights.Layers != 34*2*(2*2560*2048+2*2560*1024+3*2560*10240) || !m.Architecture.Tied || m.Weights.Head != 0 {
		t.Errorf("weights are %+v, tied %v", m.Weights, m.Architecture.Tied)
	}
	if len(m.Assumed) < 5 {
		t.Errorf("the defaults of the library are not reported: %q", m.Assumed)
	}
}

func TestEveryIndexSampleAgreesWithItsHeaders(t *testing.T) {
	for _, name := range sample.Names() {
		whole, index := t.TempDir(), t.TempDir()
		if err := sample.Write(whole, name); err != nil {
			t.Fatal(err)
		}
		if err := sample.WriteIndex(index, name); err != nil {
			t.Fatal(err)
		}
		a, err := hf.Read(whole)
		if err != nil {
			t.Fatal(err)
		}
		b, err := hf.Read(index)
		if err != nil {
			t.Fatal(err)
		}
		if a.Weights.Total() != b.Weights.Total() || b.Weights.Embedding != a.Weights.Embedding || b.Weights.Head != a.Weights.Head {
			t.Errorf("%s: headers give %+v, the index %+v", name, a.Weights, b.Weights)
		}
		if last := b.Assumed[len(b.Assumed)-1]; !strings.Contains(last, "No shard is downloaded yet") {
			t.Errorf("%s: assumed %q", name, b.Assumed)
		}
	}
}
