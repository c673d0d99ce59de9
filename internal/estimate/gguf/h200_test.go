package gguf_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/gguf/sample"
	"github.com/berth-project/berth/internal/estimate/internal/doctable"
)

// measured is what llama.cpp printed about its memory on an H200, in MiB. Rest is what the
// process took of the device in addition to its buffers.
type measured struct {
	Model                         string
	Context, MicroBatch, KVBits   int
	NoFlashAttention              bool
	FullWindowCache               bool
	Weights, Cache, Buffers, Rest cluster.Bytes
}

// The estimate is never below what llama.cpp took of the device, and at most 10 % or 1 GiB
// above it. Weights and caches are those that it printed, to the MiB.
func TestEstimatesHoldAgainstLlamaCpp(t *testing.T) {
	text, err := os.ReadFile("testdata/h200.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []measured
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	b, err := backend.Find("llamacpp")
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]*estimate.Model{}
	var table strings.Builder
	table.WriteString("| model | context | setting | weights, MiB | cache | buffers | rest | total | estimated | |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		m, known := models[r.Model]
		if !known {
			f, err := sample.Named(r.Model)
			if err != nil {
				t.Fatal(err)
			}
			m = mustRead(t, write(t, r.Model+".gguf", f, false))
			models[r.Model] = m
		}
		s := estimate.Serving{Context: r.Context, Sequences: 1, KVBits: r.KVBits, MicroBatch: r.MicroBatch, NoFlashAttention: r.NoFlashAttention, FullWindowCache: r.FullWindowCache}
		need, err := m.Layered.Need(b.WithDefaults(m, s, backend.Accelerator{}))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%s %d%s", r.Model, r.Context, r.setting())
		const mib = 1 << 20
		if d := need.Whole.Weights/mib - r.Weights; d < -1 || d > 1 {
			t.Errorf("%s: %d MiB of weights, measured %d", name, need.Whole.Weights/mib, r.Weights)
		}
		if d := need.Whole.KVCache/mib - r.Cache; d < -1 || d > 1 {
			t.Errorf("%s: a cache of %d MiB, measured %d", name, need.Whole.KVCache/mib, r.Cache)
		}
		total, estimated := r.Weights+r.Cache+r.Buffers+r.Rest, need.Whole.Total()/mib
		if over := estimated - total; over < 0 || over > 1024 && 10*over > total {
			t.Errorf("%s: estimated at %d MiB %+v, measured %d (%+v)", name, estimated, need.Whole, total, r)
		}
		fmt.Fprintf(&table, "| %s | %d | %s | %d | %d | %d | %d | %d | %d | %+.1f %% |\n", r.Model, r.Context, r.setting(),
			r.Weights, r.Cache, r.Buffers, r.Rest, total, estimated, 100*float64(estimated-total)/float64(total))
	}
	doctable.Check(t, "llamacpp", table.String())
}

func (r *measured) setting() string {
	switch {
	case r.NoFlashAttention:
		return "flash attention off"
	case r.MicroBatch > 0:
		return fmt.Sprintf("micro-batch %d", r.MicroBatch)
	case r.FullWindowCache:
		return "full window caches"
	case r.KVBits > 0:
		return fmt.Sprintf("cache of %d bits", r.KVBits)
	}
	return ""
}
