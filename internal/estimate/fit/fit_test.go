package fit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

const gi = cluster.Bytes(1) << 30

// plain returns a model of 32 GiB in 32 layers with 12 heads, which are divisible by 3,
// 4 and 6, but not by 5 and 8.
func plain() *estimate.Model {
	return &estimate.Model{
		Name: "plain", Format: "safetensors", Weights: estimate.Weights{Layers: 32 * gi, Bits: 1600},
		Architecture: &estimate.Architecture{Layers: 32, Hidden: 1536, Intermediate: 4096, Heads: 12, KVHeads: 12, HeadDim: 128, Vocab: 1536, MaxContext: 65536},
	}
}

func pool(memory cluster.Bytes, perNode, nodes int) Pool {
	return Pool{Accelerator: backend.Accelerator{Memory: memory}, PerNode: perNode, Nodes: nodes}
}

func named(t *testing.T, name string) *backend.Backend {
	t.Helper()
	b, err := backend.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decided is the part of a Fit without its figures, which are checked against the estimate.
type decided struct {
	Fits                      bool
	Devices, Tensor, Pipeline int
}

func TestFewestDevices(t *testing.T) {
	tests := map[string]struct {
		backend string
		form    estimate.Serving
		pool    Pool
		want    decided
	}{
		"one":                        {"vllm", estimate.Serving{Context: 1024}, pool(48*gi, 8, 4), decided{true, 1, 1, 1}},
		"two":                        {"vllm", estimate.Serving{Context: 1024}, pool(24*gi, 8, 4), decided{true, 2, 2, 1}},
		"12 heads on 3":              {"vllm", estimate.Serving{Context: 1024}, pool(15*gi, 8, 4), decided{true, 3, 3, 1}},
		"6, since 5 does not divide": {"vllm", estimate.Serving{Context: 1024}, pool(9*gi, 8, 4), decided{true, 6, 6, 1}},
		"mindie takes powers of two": {"mindie", estimate.Serving{Context: 1024}, pool(19*gi, 8, 4), decided{true, 4, 4, 1}},
		"whole nodes of two":         {"vllm", estimate.Serving{Context: 1024}, pool(15*gi, 2, 4), decided{true, 4, 2, 2}},
		"stages if the heads do not divide further": {"vllm", estimate.Serving{Context: 1024}, pool(13*gi/2, 8, 1), decided{true, 8, 4, 2}},
		"a longer context takes more":               {"vllm", estimate.Serving{Context: 65536}, pool(48*gi, 8, 4), decided{true, 2, 2, 1}},
		"custom stays on one node":                  {"custom", estimate.Serving{Context: 1024}, pool(15*gi, 2, 4), decided{false, 2, 2, 1}},
		"tensor and pipeline are set":               {"vllm", estimate.Serving{Context: 1024, Tensor: 4, Pipeline: 2}, pool(48*gi, 8, 4), decided{true, 8, 4, 2}},
		"tensor is set":                             {"vllm", estimate.Serving{Context: 1024, Tensor: 4}, pool(48*gi, 8, 4), decided{true, 4, 4, 1}},
		"does not fit":                              {"vllm", estimate.Serving{Context: 1024}, pool(4*gi, 2, 2), decided{false, 4, 1, 4}},
	}
	for name, tt := range tests {
		f, err := FewestDevices(plain(), named(t, tt.backend), tt.form, tt.pool)
		if diff := cmp.Diff(tt.want, decided{f.Fits, f.Devices, f.Tensor, f.Pipeline}); err != nil || diff != "" {
			t.Errorf("%s: %v, %+v\n%s", name, err, f, diff)
		}
	}
}

func TestUsableIsTheBackendsShare(t *testing.T) {
	tests := map[string]cluster.Bytes{"vllm": 900 * 48 * gi / 1000, "sglang": 48 * gi, "custom": 48 * gi}
	for name, want := range tests {
		if f, err := FewestDevices(plain(), named(t, name), estimate.Serving{Context: 1024}, pool(48*gi, 8, 4)); err != nil || f.Usable != want {
			t.Errorf("%s uses %d of a device (%v), want %d", name, f.Usable, err, want)
		}
	}
}

// If the context does not fit, the result has the longest context that fits.
func TestNearMissNamesAContext(t *testing.T) {
	b := named(t, "vllm")
	f, err := FewestDevices(plain(), b, estimate.Serving{}, pool(40*gi, 1, 1))
	if err != nil || f.Fits || f.Context == 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	for context, want := range map[int]bool{f.Context: true, f.Context + 1: false} {
		if again, err := FewestDevices(plain(), b, estimate.Serving{Context: context}, pool(40*gi, 1, 1)); err != nil || again.Fits != want {
			t.Errorf("%d tokens: %+v, %v", context, again, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	unknown := &estimate.Model{Name: "odd", Format: "safetensors", Weights: estimate.Weights{Layers: gi}}
	tests := map[string]struct {
		model   *estimate.Model
		backend string
		form    estimate.Serving
		want    string
	}{
		"heads":      {plain(), "vllm", estimate.Serving{Tensor: 5}, "the 12 attention heads of model plain do not divide over 5 devices"},
		"powers":     {plain(), "mindie", estimate.Serving{Tensor: 6}, "mindie divides over 1, 2, 4, 8, … devices, not over 6"},
		"too many":   {plain(), "vllm", estimate.Serving{Tensor: 6, Pipeline: 9}, "can use 32 of these devices together"},
		"unknown":    {unknown, "vllm", estimate.Serving{Tensor: 64}, "can use 32 of these devices together"},
		"layers":     {layeredModel(), "llamacpp", estimate.Serving{Tensor: 2}, "divided layer by layer"},
		"no weights": {&estimate.Model{Name: "empty"}, "vllm", estimate.Serving{}, "not known"},
	}
	for name, tt := range tests {
		if _, err := FewestDevices(tt.model, named(t, tt.backend), tt.form, pool(48*gi, 8, 4)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

func TestOnlyATotalIsKnown(t *testing.T) {
	speech := &estimate.Model{Name: "speech", Format: "table", Weights: estimate.Weights{Layers: 10 * gi}}
	odd := &estimate.Model{Name: "odd", Format: "safetensors", Weights: estimate.Weights{Layers: 10 * gi}}
	tests := map[string]struct {
		model   *estimate.Model
		backend string
		memory  cluster.Bytes
		fits    bool
		used    cluster.Bytes
	}{
		"a table fits exactly":          {speech, "voxbox", 10 * gi, true, 10 * gi},
		"a table that does not":         {speech, "voxbox", 10*gi - 1, false, 10 * gi},
		"1.2 times and 2 GiB":           {odd, "custom", 14 * gi, true, 14 * gi},
		"1.2 times and 2 GiB, too much": {odd, "custom", 14*gi - 1, false, 14 * gi},
	}
	for name, tt := range tests {
		f, err := FewestDevices(tt.model, named(t, tt.backend), estimate.Serving{}, pool(tt.memory, 1, 1))
		if err != nil || f.Fits != tt.fits || f.Use.Total() != tt.used || f.Devices != 1 {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}

// A model of unknown architecture is divided evenly.
func TestATotalIsDivided(t *testing.T) {
	odd := &estimate.Model{Name: "odd", Format: "safetensors", Weights: estimate.Weights{Layers: 10 * gi}}
	for name, tt := range map[string]struct {
		form   estimate.Serving
		memory cluster.Bytes
		want   decided
	}{
		"14 GiB on two":     {estimate.Serving{}, 7 * gi, decided{true, 2, 2, 1}},
		"powers of two":     {estimate.Serving{}, 7*gi - 1, decided{true, 4, 4, 1}},
		"tensor 3 is set":   {estimate.Serving{Tensor: 3}, 5 * gi, decided{true, 3, 3, 1}},
		"pipeline 2 is set": {estimate.Serving{Pipeline: 2}, 7 * gi, decided{true, 2, 1, 2}},
	} {
		b := named(t, "vllm")
		b.Strategies = []backend.Strategy{backend.Device, backend.Devices}
		f, err := FewestDevicesWith(Options{Share: cluster.Whole}, odd, b, tt.form, pool(tt.memory, 8, 1))
		if diff := cmp.Diff(tt.want, decided{f.Fits, f.Devices, f.Tensor, f.Pipeline}); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// layeredModel returns a model with 10 layers of 1 GiB and a cache of 1 MiB for each
// 1,024 tokens and layer.
func layeredModel() *estimate.Model {
	return &estimate.Model{
		Name: "layered", Format: "gguf", Weights: estimate.Weights{Layers: 10 * gi},
		Architecture: &estimate.Architecture{MaxContext: 1 << 20},
		Layered: &estimate.Layered{Need: func(f estimate.Serving) (estimate.LayeredNeed, error) {
			cache := cluster.Bytes(f.Context) << 10
			return estimate.LayeredNeed{
				Layers: 10, Bytes: gi + cache, Divided: estimate.Working{Each: gi},
				Whole: estimate.Breakdown{Weights: 10 * gi, KVCache: 10 * cache, Activations: gi},
			}, nil
		}},
	}
}

func TestLayerByLayer(t *testing.T) {
	b := named(t, "llamacpp")
	tests := map[string]struct {
		pool    Pool
		context int
		want    Fit
	}{
		"one device": {pool(12*gi, 8, 1), 1024, Fit{
			Fits: true, Devices: 1, Tensor: 1, Pipeline: 1, Layers: 10, Usable: 12 * gi, Context: 104857,
			Use: estimate.Breakdown{Weights: 10 * gi, KVCache: 10 << 20, Activations: gi},
		}},
		// 5 GiB hold the fixed 1 GiB and 3 layers with their cache, so 4 devices hold up to 3 layers each.
		"four devices": {pool(5*gi, 8, 1), 1024, Fit{
			Fits: true, Devices: 4, Tensor: 1, Pipeline: 1, Layers: 3, Usable: 5 * gi, Context: 349525,
			Use: estimate.Breakdown{Weights: 3 * gi, KVCache: 3 << 20, Overhead: gi},
		}},
		"too few": {pool(5*gi, 2, 1), 1024, Fit{
			Devices: 2, Tensor: 1, Pipeline: 1, Layers: 5, Usable: 5 * gi,
			Use: estimate.Breakdown{Weights: 5 * gi, KVCache: 5 << 20, Overhead: gi},
		}},
	}
	for name, tt := range tests {
		got, err := FewestDevices(layeredModel(), b, estimate.Serving{Context: tt.context}, tt.pool)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// A model that is reported to fit does fit. The largest context fits, and one token more
// does not.
func TestFitsHold(t *testing.T) {
	m := plain()
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SampledFrom(backend.All()).Draw(t, "backend")
		form := estimate.Serving{Context: rapid.IntRange(1, 65536).Draw(t, "context"), Sequences: rapid.IntRange(1, 64).Draw(t, "sequences")}
		pool := pool(cluster.Bytes(rapid.Int64Range(1<<30, 200<<30).Draw(t, "memory")), rapid.IntRange(1, 8).Draw(t, "devices"), rapid.IntRange(1, 4).Draw(t, "nodes"))
		f, err := FewestDevices(m, b, form, pool)
		if err != nil {
			t.Fatal(err)
		}
		if claimed := f.Claim.BytesOf(pool.Memory, 0); f.Fits != (f.Claim.Enough <= claimed) || f.Fits != (f.Context >= form.Context) || f.Usable > pool.Memory || f.Devices > pool.PerNode*pool.Nodes {
			t.Fatalf("%+v", f)
		}
		shape := form
		shape.Tensor, shape.Pipeline = f.Tensor, f.Pipeline
		shape = b.WithDefaults(m, shape, pool.Accelerator)
		for context, want := range map[int]bool{f.Context: true, f.Context + 1: false} {
			if context == 0 || context > m.Architecture.MaxContext {
				continue
			}
			shape.Context = context
			use, err := m.PerDevice(shape)
			claim := b.Claim(0, m, shape, pool.Accelerator, use.Total(), use.Total()-use.Weights-use.KVCache)
			if err != nil || (claim.Enough <= claim.BytesOf(pool.Memory, 0)) != want {
				t.Fatalf("%d tokens: %+v, %+v (%v)", context, use, claim, err)
			}
			// Weights and cache fit into the static share, and all parts together into the claim.
			if of := claim.BytesOf(pool.Memory, 0); want && (use.Total() > of || claim.Static > claim.StaticBytes(of)) {
				t.Fatalf("%d tokens fit with %+v, %+v", context, use, claim)
			}
		}
	})
}
