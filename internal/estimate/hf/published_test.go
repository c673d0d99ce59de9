package hf_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/instance"
	"github.com/berth-project/berth/internal/estimate/internal/doctable"
)

// published is what servers printed about their memory. Figures are GiB of one device; 0:
// not published.
type published struct {
	Models map[string]struct {
		Config json.RawMessage `json:"config"`
		Bytes  int64           `json:"bytes"` // of the published files
	} `json:"models"`
	Figures []struct {
		Model   string `json:"model"`
		Server  string `json:"server"`
		Version string `json:"version"`
		Device  string `json:"device"`
		// Printed is what the source says of the version if it names no release; Version is
		// then the release before it. Memory and Type are those of a device that is not
		// listed, and Device is what the source says of it.
		Printed    string  `json:"printed"`
		Memory     float64 `json:"memory"` // GiB
		Type       string  `json:"type"`
		Tensor     int     `json:"tensor"`
		Pipeline   int     `json:"pipeline"`
		Context    int     `json:"context"`
		KVBits     int     `json:"kvBits"`
		WeightBits int     `json:"weightBits"`
		Weights    float64 `json:"weights"`
		Activation float64 `json:"activations"`
		NonTorch   float64 `json:"nonTorch"`
		Graphs     float64 `json:"graphs"`
		Cache      float64 `json:"cache"`
		Tokens     int     `json:"tokens"` // that the cache holds
		Usable     float64 `json:"usable"` // what the server may use of the device
		Source     string  `json:"source"`
	} `json:"figures"`
}

// rounding is by how much the sum of printed figures may be too large.
const rounding = cluster.Bytes(5 << 20)

// The estimate is never below what a server printed, and at most 15 % or 1.5 GiB above it.
// A part that was not printed is the estimated one on both sides. The KV cache is compared
// for the tokens that it holds.
func TestPublishedFigures(t *testing.T) {
	text, err := os.ReadFile("testdata/published.json")
	if err != nil {
		t.Fatal(err)
	}
	var all published
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	devices := map[string]instance.Device{}
	for _, d := range instance.Devices() {
		devices[d.Product] = d
	}
	models := map[string]*estimate.Model{}
	for name, m := range all.Models {
		models[name] = withConfig(t, m.Config, m.Bytes)
		if a := models[name].Architecture; a == nil || a.Bound != nil {
			t.Fatalf("%s: %s", name, models[name].Assumed)
		}
	}
	var table strings.Builder
	table.WriteString("| model | server | device | tp, pp | weights | activations | beside PyTorch | graphs | KV cache | total | estimated | | source |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range all.Figures {
		m, d := models[f.Model], devices[f.Device]
		b, err := backend.Find(f.Server)
		if err != nil {
			t.Fatal(err)
		}
		if b, err = b.At(f.Version); err != nil {
			t.Fatal(err)
		}
		if f.Memory > 0 {
			d = instance.Device{Product: f.Device, Type: f.Type, Memory: cluster.Bytes(f.Memory * (1 << 30))}
		} else if d.Memory == 0 {
			t.Fatalf("no device is called %q", f.Device)
		}
		on := backend.Accelerator{Product: d.Product, Type: d.Type, Memory: d.Memory, Unusable: d.Unusable}
		s := estimate.Serving{Tensor: f.Tensor, Pipeline: max(1, f.Pipeline), Context: f.Context, KVBits: f.KVBits, WeightBits: f.WeightBits}
		s = b.WithDefaults(m, s, on)
		if f.Context <= s.Prompt { // a step has the tokens of the context, not of the whole cache
			s.BatchTokens = max(s.BatchTokens, f.Context)
		}
		s.Context, s.Prompt = cmp.Or(f.Tokens, f.Context), 0
		parts, err := m.PerDevice(s)
		if err != nil {
			t.Fatal(err)
		}
		if f.Cache == 0 || f.Tokens == 0 {
			parts.KVCache = 0
		}
		part := func(gib float64, estimated cluster.Bytes) (cluster.Bytes, string) {
			if gib == 0 {
				return estimated, ""
			}
			return cluster.Bytes(gib * (1 << 30)), fmt.Sprintf("%.2f", gib)
		}
		weights, w := part(f.Weights, parts.Weights)
		activations, a := part(f.Activation, parts.Activations)
		// What the allocator loses by rounding is part of the printed weights.
		overhead, n := part(f.NonTorch, s.Overhead)
		graphs, g := part(f.Graphs, parts.Graph)
		cache, k := cluster.Bytes(0), ""
		if f.Tokens > 0 {
			cache, k = part(f.Cache, parts.KVCache)
		}
		total := weights + activations + overhead + graphs + cache
		over := parts.Total() - total
		name := fmt.Sprintf("%s %s on %s, tp %d, pp %d, %d tokens", f.Model, f.Version, f.Device, f.Tensor, s.Pipeline, f.Context)
		switch {
		case over < -rounding:
			t.Errorf("%s: estimated at %s (%+v), which is %s below %s", name, gib(parts.Total()), parts, gib(-over), gib(total))
		case over > 3<<29 && 100*over > 15*total:
			t.Errorf("%s: estimated at %s (%+v), which is %s above %s", name, gib(parts.Total()), parts, gib(over), gib(total))
		}
		fmt.Fprintf(&table, "| %s | %s %s | %s | %d, %d | %s | %s | %s | %s | %s | %s | %s | %s | [link](%s) |\n", f.Model, f.Server, cmp.Or(f.Printed, f.Version), f.Device,
			f.Tensor, s.Pipeline, w, a, n, g, k, gib(total), gib(parts.Total()), percent(parts.Total(), total), f.Source)
	}
	doctable.Check(t, "published", table.String())
}
