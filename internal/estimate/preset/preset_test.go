package preset

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// perToken returns what one token takes in the cache according to the architecture: in
// the layers without a window, or in all layers.
func perToken(p *Preset, all bool) int64 {
	a := p.Architecture
	layers := a.Layers
	if !all {
		layers = 0
		for _, c := range a.Caches {
			if c.Window == 0 {
				layers++
			}
		}
	}
	numbers := 2 * a.KVHeads * a.HeadDim
	if a.Latent != nil {
		numbers = a.Latent.Rank + a.Latent.Rope
	}
	return int64(2 * layers * numbers)
}

func TestBytesPerTokenFollowFromTheArchitecture(t *testing.T) {
	for _, p := range All() {
		if got := perToken(p, true); got != p.BytesPerToken {
			t.Errorf("%s: the architecture gives %d bytes a token, the table %d", p.Name, got, p.BytesPerToken)
		}
	}
}

// Once the windows are full, another token takes memory only in layers without a window.
func TestWindowsBoundTheCache(t *testing.T) {
	want := map[string]int64{
		"gpt-oss-20b":  24576, // 12 of 24 layers
		"gpt-oss-120b": 36864, // 18 of 36
		"gemma-3-4b":   20480, // 5 of 34
		"gemma-3-27b":  81920, // 10 of 62
	}
	for _, p := range All() {
		if !p.Architecture.HasWindows() {
			continue
		}
		if got := perToken(p, false); got != want[p.Name] {
			t.Errorf("%s: %d bytes a token beyond the windows, want %d", p.Name, got, want[p.Name])
		}
		delete(want, p.Name)
	}
	if len(want) > 0 {
		t.Errorf("no windows: %v", want)
	}
}

// The matrices of the architecture add up to the weights of the table, for models with
// 16 bits per number and without experts.
func TestWeightsFollowFromTheArchitecture(t *testing.T) {
	checked := 0
	for _, p := range All() {
		a := p.Architecture
		if p.Quantised != "" || a.Experts > 0 {
			continue
		}
		checked++
		mlp, embeddings := 3, 2
		if strings.HasPrefix(p.Name, "falcon") {
			mlp = 2 // there is no gate; the files hold the tied head twice
		}
		if a.Tied && mlp == 3 {
			embeddings = 1
		}
		numbers := a.Layers*(2*a.Hidden*a.Heads*a.HeadDim+2*a.Hidden*a.KVHeads*a.HeadDim+mlp*a.Hidden*a.Intermediate) + embeddings*a.Vocab*a.Hidden
		if strings.HasPrefix(p.Name, "gemma-3") {
			numbers += 417_000_000 // the vision encoder
		}
		if off := 1000 * (2*int64(numbers) - int64(p.Weights)) / int64(p.Weights); off < -2 || off > 2 {
			t.Errorf("%s: the architecture weighs %d bytes, the table says %d", p.Name, 2*numbers, p.Weights)
		}
		if off := 1000 * (2*p.Parameters - int64(p.Weights)) / int64(p.Weights); off < -2 || off > 2 {
			t.Errorf("%s: %d parameters do not weigh %d bytes", p.Name, p.Parameters, p.Weights)
		}
	}
	if checked < 15 {
		t.Errorf("only %d presets were checked", checked)
	}
}

func TestModelKeepsItsWeights(t *testing.T) {
	for _, p := range All() {
		m := p.Model()
		if m.PublishedSize() != p.Weights || m.Weights.Layers <= 0 || (p.Loaded == 0 && m.Weights.Total() != p.Weights) {
			t.Errorf("%s weighs %d, its model %+v", p.Name, p.Weights, m.Weights)
		}
		if m.Architecture.MaxContext != p.MaxTokens || m.Format != "preset" || len(m.Assumed) == 0 {
			t.Errorf("%s: %+v", p.Name, m)
		}
		if p.Quantised == "" && (m.Weights.Bits < 1595 || m.Weights.Bits > 1605) {
			t.Errorf("%s takes %d hundredths of a bit a parameter", p.Name, m.Weights.Bits)
		}
	}
}

// If a repository holds its weights twice, a device holds one copy.
func TestOneCopyIsLoaded(t *testing.T) {
	for name, loaded := range map[string]cluster.Bytes{"gpt-oss-20b": 13_761_264_768, "gpt-oss-120b": 65_248_815_744} {
		p, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		m := p.Model()
		if m.Weights.Total() != loaded || m.PublishedSize() != p.Weights || p.Weights < 2*loaded-loaded/50 {
			t.Errorf("%s loads %d of %d", name, m.Weights.Total(), m.PublishedSize())
		}
		if said := strings.Join(m.Assumed, " "); !strings.Contains(said, "holds the weights twice") {
			t.Errorf("%s does not say that it loads one copy: %s", name, said)
		}
	}
}

// Tensor parallelism divides each expert, and each device holds whole blocks of its
// weights.
func TestExpertsDivide(t *testing.T) {
	p, err := Find("deepseek-v3")
	if err != nil {
		t.Fatal(err)
	}
	m := p.Model()
	for tensor, want := range map[int]bool{1: true, 16: true, 32: false, 128: false} {
		if err := m.CheckTensor(estimate.Serving{Tensor: tensor}); (err == nil) != want {
			t.Errorf("%s over %d devices: %v", p.Name, tensor, err)
		}
	}
	for _, p := range All() {
		if a := p.Architecture; a.Width <= 0 || a.Width > a.Intermediate {
			t.Errorf("%s: each MLP is %d wide, all together %d", p.Name, a.Width, a.Intermediate)
		}
	}
}

func TestFind(t *testing.T) {
	tests := map[string]string{
		"phi-4-mini": "phi-4-mini", "phi-4-mini-instruct": "phi-4-mini", "Llama-3.1-8B-Instruct": "llama-3.1-8b",
		"microsoft/phi-4": "phi-4", "mistral-7b": "mistral-7b", "mistral-7b-instruct": "mistral-7b-instruct",
		"gemma-3-4b-it": "gemma-3-4b", "deepseek-r1-0528": "deepseek-r1-0528",
	}
	for name, want := range tests {
		if p, err := Find(name); err != nil || p.Name != want {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	_, err := Find("phi-4-mni")
	if want := `no preset is called "phi-4-mni"; did you mean "phi-4-mini"?`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNamesAreUnique(t *testing.T) {
	of := map[string]string{}
	for _, p := range All() {
		for _, n := range append([]string{p.Name, p.Repository}, p.Aliases...) {
			n = strings.ToLower(n)
			if other, taken := of[n]; taken && other != p.Name {
				t.Errorf("%s and %s are both called %s", other, p.Name, n)
			}
			of[n] = p.Name
		}
	}
}

func TestRequestedIsInformation(t *testing.T) {
	want := map[string]cluster.Bytes{"mistral-7b": 14 << 30, "mistral-7b-instruct": 16 << 30, "deepseek-r1-distill-llama-8b": 33 << 29, "gpt-oss-20b": 0}
	for name, asked := range want {
		if p, err := Find(name); err != nil || p.Requested != asked {
			t.Errorf("%s requests %d, want %d (%v)", name, p.Requested, asked, err)
		}
	}
}

// A caller that changes a preset does not change it for other callers.
func TestAllGivesCopies(t *testing.T) {
	All()[0].Weights = 1
	if All()[0].Weights == 1 {
		t.Error("the table was changed")
	}
}

// The estimate gives the same bytes per token as the table.
func TestEstimatesAgreeWithTheTable(t *testing.T) {
	for _, p := range All() {
		m := p.Model()
		got, err := m.KVPerToken(estimate.Serving{})
		if err != nil || int64(got) != p.BytesPerToken {
			t.Errorf("%s: %d bytes a token (%v), the table says %d", p.Name, got, err, p.BytesPerToken)
		}
		b, err := m.PerDevice(estimate.Serving{Context: p.MaxTokens})
		if err != nil || b.Weights != m.Weights.Total() {
			t.Errorf("%s: %+v (%v)", p.Name, b, err)
		}
		if full := cluster.Bytes(p.BytesPerToken) * cluster.Bytes(p.MaxTokens); b.KVCache > full || (b.KVCache < full) != p.Architecture.HasWindows() {
			t.Errorf("%s keeps %d bytes of at most %d", p.Name, b.KVCache, full)
		}
	}
}
