package estimate_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// A backend allocates as many rows of logits as it may ever sample. With a vocabulary of
// 262,208 they take more than any layer.
func TestRowsOfLogits(t *testing.T) {
	m := eight()
	m.Architecture.Vocab = 262208
	rest := 32 * mib
	stream := cluster.Bytes(2048 * 4096 * 2)
	for name, tt := range map[string]struct {
		form estimate.Serving
		want cluster.Bytes
	}{
		"one sequence":                       {estimate.Serving{Context: 8192}, 264*mib + rest},
		"256 rows for one":                   {estimate.Serving{Context: 8192, Rows: 256}, stream + 256*262208*10 + rest},
		"more sequences than rows":           {estimate.Serving{Context: 8192, Sequences: 300, Rows: 256}, stream + 300*262208*10 + rest},
		"no more rows than tokens in a step": {estimate.Serving{Context: 8192, Rows: 5000}, stream + 2048*262208*10 + rest},
	} {
		if got := device(t, m, tt.form).Activations; got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// Some backends keep more tokens than the window of a layer.
func TestWindowFloor(t *testing.T) {
	m := eight()
	windows := make([]int, 32)
	for i := range 16 {
		windows[i] = 1024
	}
	m.Architecture.Caches = m.Architecture.WithWindows(windows)
	const token = 2 * 8 * 128 * 2
	for floor, want := range map[cluster.Milli]cluster.Bytes{
		0:    16 * token * (10000 + 1024),
		50:   16 * token * (10000 + 1024), // less than the window
		800:  16 * token * (10000 + 8000),
		1000: 32 * token * 10000,
	} {
		if got := device(t, m, estimate.Serving{Context: 10000, WindowFloor: floor}).KVCache; got != want {
			t.Errorf("%d of the context: %d, want %d", floor, got, want)
		}
	}
}
