package hf_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/hf"
	"github.com/berth-project/berth/internal/estimate/internal/doctable"
)

// measured is the output of hack/measure/measure.py on an H200.
type measured struct {
	Machine struct {
		Memory   cluster.Bytes
		Together struct {
			Used   cluster.Bytes
			Models []struct {
				Model   string
				Context int
			}
		}
	}
	Runs []struct {
		Model                                                        string
		Context, Sequences, BatchTokens                              int
		Weights, CacheBytes, PeakAllocated, PeakReserved, DeviceUsed cluster.Bytes
	}
}

// The measured peak is the most memory that was allocated at once, plus what the runtime
// takes. Memory that the allocator holds without using it is not included: it depends on
// the order of allocations, and a server that is short of memory releases it.
func TestEstimatesHoldAgainstAnH200(t *testing.T) {
	text, err := os.ReadFile("testdata/h200/measured.json")
	if err != nil {
		t.Fatal(err)
	}
	var all measured
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Runs) < 50 {
		t.Fatalf("only %d measurements", len(all.Runs))
	}
	var table strings.Builder
	table.WriteString("| model | context | step | weights + KV, measured | estimated | | peak, measured | estimated | | held |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range all.Runs {
		name := fmt.Sprintf("%s, %d × %d in steps of %d", r.Model, r.Sequences, r.Context, r.BatchTokens)
		m, err := hf.Read(filepath.Join("testdata/h200", r.Model))
		if err != nil {
			t.Fatal(err)
		}
		b, err := m.PerDevice(estimate.Serving{Context: r.Context, Sequences: r.Sequences, BatchTokens: r.BatchTokens, Overhead: estimate.RuntimeOverhead})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kept, keptMeasured := b.Weights+b.KVCache, r.Weights+r.CacheBytes
		if d := kept - keptMeasured; 100*max(d, -d) > 3*keptMeasured {
			t.Errorf("%s: weights and cache are estimated at %d, measured at %d", name, kept, keptMeasured)
		}
		if slices.Contains(withoutKernels, r.Model) {
			continue
		}
		peak := r.PeakAllocated + r.DeviceUsed - r.PeakReserved
		over := b.Total() - peak
		if over < 0 {
			t.Errorf("%s: estimated at %d, which is %d below the measured peak", name, b.Total(), -over)
		}
		if over > 1<<30 && 100*over > 10*peak {
			t.Errorf("%s: estimated at %d, which is %d above the measured peak", name, b.Total(), over)
		}
		// What the allocator loses by rounding is part of the overhead, and of the measured weights.
		step, stepMeasured := b.Activations, r.PeakAllocated-r.Weights-r.CacheBytes
		if step < stepMeasured {
			t.Errorf("%s: a step is estimated at %d, measured at %d", name, step, stepMeasured)
		}
		fmt.Fprintf(&table, "| %s | %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", r.Model, tokens(r.Context, r.Sequences), r.BatchTokens,
			gib(keptMeasured), gib(kept), percent(kept, keptMeasured), gib(peak), gib(b.Total()), percent(b.Total(), peak), gib(r.DeviceUsed))
	}
	doctable.Check(t, "measured", table.String())

	// Models that run at once, each in a process of its own, take no more than the sum of
	// their estimates.
	var sum cluster.Bytes
	for _, one := range all.Machine.Together.Models {
		m, err := hf.Read(filepath.Join("testdata/h200", one.Model))
		if err != nil {
			t.Fatal(err)
		}
		b, err := m.PerDevice(estimate.Serving{Context: one.Context, Overhead: estimate.RuntimeOverhead})
		if err != nil {
			t.Fatal(err)
		}
		sum += b.Total()
	}
	used := all.Machine.Together.Used
	if len(all.Machine.Together.Models) < 3 || used > sum+1<<29 || sum-used > 1<<30 { // 0.5 GiB may be held without being used
		t.Errorf("%d models at once take %s, estimated at %s", len(all.Machine.Together.Models), gib(used), gib(sum))
	}
}

// withoutKernels are models that transformers runs without the kernels that servers have, in
// many times their memory: states are computed by plain matrices, and local attention with a
// mask. Only the weights and caches of these models are compared.
var withoutKernels = []string{"granite-hybrid-20-layers", "modernbert-large"}

func tokens(context, sequences int) string {
	if sequences > 1 {
		return fmt.Sprintf("%d × %d", sequences, context)
	}
	return fmt.Sprint(context)
}

func gib(b cluster.Bytes) string { return fmt.Sprintf("%.2f", float64(b)/(1<<30)) }

func percent(got, want cluster.Bytes) string {
	return fmt.Sprintf("%+.1f %%", 100*float64(got-want)/float64(want))
}
