package estimate_test

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/estimate"
)

// thirty returns Qwen3-30B-A3B as published in fp8.
func thirty() *estimate.Model {
	return &estimate.Model{
		Name:    "thirty",
		Weights: estimate.Weights{Layers: 30 * gib, Quantised: "fp8", Block: 128},
		Architecture: &estimate.Architecture{
			Layers: 48, Hidden: 2048, Intermediate: 6144, Width: 768, Heads: 32, KVHeads: 4, HeadDim: 128,
			Vocab: 151936, MaxContext: 40960, Experts: 128, Active: 8,
		},
	}
}

func TestCheckTensorByWidth(t *testing.T) {
	plain := thirty()
	plain.Weights.Block = 0
	dense := eight()
	dense.Architecture.Width, dense.Architecture.Heads, dense.Architecture.KVHeads = 14336, 24, 24
	tests := map[string]struct {
		model  *estimate.Model
		tensor int
		want   string // "": it divides
	}{
		"whole":                      {thirty(), 1, ""},
		"blocks stay whole":          {thirty(), 2, ""},
		"half a block":               {thirty(), 4, "the experts of model thirty, 768 wide, come to 192 on each of 4 devices, which is not a multiple of the block size 128"},
		"without blocks":             {plain, 4, ""},
		"a width not divisible by 3": {dense, 3, "the MLPs of model eight, 14336 wide, do not divide over 3 devices"},
		"a width divisible by 8":     {dense, 8, ""},
	}
	for name, tt := range tests {
		err := tt.model.CheckTensor(estimate.Serving{Tensor: tt.tensor})
		if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	if _, err := thirty().PerDevice(estimate.Serving{Tensor: 4, Context: 1}); err == nil || !strings.Contains(err.Error(), "768 wide") {
		t.Errorf("the estimate for a tensor parallelism that cannot be loaded: %v", err)
	}
}
