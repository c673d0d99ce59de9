package gguf_test

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/gguf/sample"
)

// reserved is one line of testdata/llamacpp.txt.
type reserved struct {
	line, model     string
	serving         estimate.Serving
	devices, layers int // layers: how many are on devices; 0: all
	weights, cache  cluster.Bytes
	buffers         []cluster.Bytes // of each device
}

func readReserved(t *testing.T) []reserved {
	f, err := os.Open("testdata/llamacpp.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var out []reserved
	for in := bufio.NewScanner(f); in.Scan(); {
		line := in.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		head, figures, _ := strings.Cut(line, ": ")
		model, parameters, _ := strings.Cut(head, " ")
		r := reserved{line: head, model: model, devices: 1}
		for _, p := range strings.Split(parameters, ",") {
			switch key, value, _ := strings.Cut(p, "="); key {
			case "flashAttention":
				r.serving.NoFlashAttention = value == "off"
			case "fullWindowCache":
				r.serving.FullWindowCache = value == "on"
			default:
				*map[string]*int{
					"context": &r.serving.Context, "sequences": &r.serving.Sequences, "microBatch": &r.serving.MicroBatch,
					"bits": &r.serving.KVBits, "devices": &r.devices, "layers": &r.layers,
				}[key] = int(number(value))
			}
		}
		fields := strings.Fields(figures)
		r.weights, r.cache = cluster.Bytes(number(fields[0])), cluster.Bytes(number(fields[1]))
		for _, b := range fields[2:] {
			r.buffers = append(r.buffers, cluster.Bytes(number(b)))
		}
		out = append(out, r)
	}
	return out
}

// What llama.cpp reserves is never above the estimate. Weights and caches are equal, except
// for alignment. Buffers are at most 15 % or 300 MiB below the estimate.
func TestBuffers(t *testing.T) {
	models := map[string]*estimate.Model{}
	for _, name := range sample.Names {
		f, err := sample.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		models[name] = mustRead(t, write(t, name+".gguf", f, false))
	}
	rows := readReserved(t)
	if len(rows) < 130 {
		t.Fatalf("only %d figures", len(rows))
	}
	for _, r := range rows {
		need := of(t, models[r.model], r.serving)
		if r.layers == 0 && (need.Whole.KVCache != r.cache || need.Whole.Weights > r.weights || r.weights-need.Whole.Weights > 1024) {
			t.Errorf("%s: cache %d, not %d; weights %d, not %d", r.line, need.Whole.KVCache, r.cache, need.Whole.Weights, r.weights)
		}
		for i, took := range r.buffers {
			each := need.Whole.Activations
			if r.devices > 1 || r.layers > 0 {
				working := need.Divided
				if r.layers > 0 {
					working = need.Partly
				}
				each = working.Each - need.Whole.Overhead
				if i == len(r.buffers)-1 {
					each += working.Output
				}
			}
			if above := each - took; above < 0 || above > max(300<<20, took*15/100) {
				t.Errorf("%s: device %d: %d, and llama.cpp takes %d (%.1f MiB)", r.line, i, each, took, float64(above)/(1<<20))
			}
		}
	}
}

// If the number of sequences is not set, the server has four of them: their windows and
// states count four times, and the context once.
func TestSequencesThatAreNotSet(t *testing.T) {
	for name, want := range map[string]struct{ one, open cluster.Bytes }{
		"gemma-3-4b-q4_0":   {5*4096*8192 + 29*4096*1536, 5*4096*8192 + 29*4096*4608},
		"mamba2-2.7b-f16":   {171900928, 4 * 171900928},
		"llama-3.1-8b-q8_0": {1 << 30, 1 << 30},
	} {
		f, _ := sample.Named(name)
		m := mustRead(t, write(t, name+".gguf", f, false))
		one := of(t, m, estimate.Serving{Context: 8192, Sequences: 1}).Whole.KVCache
		open := of(t, m, estimate.Serving{Context: 8192}).Whole.KVCache
		if one != want.one || open != want.open {
			t.Errorf("%s: %d and %d bytes, not %d and %d", name, one, open, want.one, want.open)
		}
	}
}
