package backend

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

func TestWithDefaults(t *testing.T) {
	none := &estimate.Model{}
	got := find(t, "vllm").WithDefaults(none, estimate.Serving{Tensor: 1, Graph: 7}, Accelerator{})
	want := estimate.Serving{
		Tensor: 1, ExpertsOverRanks: true, UnevenExperts: true, BatchTokens: 2048, VocabMultiple: 64, Rows: 256, LogitBytes: 15, Graph: 7, Overhead: got.Overhead,
		WindowSteps: 2, WholeChunks: true, Page: 16, Groups: 150, States: 2, LatentTokens: 65536,
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Overhead == 0 {
		t.Error(diff)
	}
	for name, want := range map[string]cluster.Milli{"vllm": 0, "sglang": 800, "mindie": 1000, "llamacpp": 0} {
		if got := find(t, name).WithDefaults(none, estimate.Serving{}, Accelerator{}).WindowFloor; got != want {
			t.Errorf("%s keeps %d of the context in layers with a window, want %d", name, got, want)
		}
	}
}

// An odd vocabulary can be divided by backends that pad it to a multiple of 64.
func TestVocabulariesArePadded(t *testing.T) {
	odd := &estimate.Model{Name: "odd", Weights: estimate.Weights{Layers: 1 << 30}, Architecture: &estimate.Architecture{
		Layers: 2, Hidden: 64, Intermediate: 240, Width: 240, Heads: 12, KVHeads: 12, HeadDim: 16, Vocab: 50257, MaxContext: 1024,
	}}
	all := []int{1, 2, 3, 4, 6, 12} // all of these divide 50,304
	for name, want := range map[string][]int{"vllm": all, "sglang": all, "mindie": {1}, "custom": {1}} {
		if diff := cmp.Diff(want, find(t, name).TensorSizes(odd, 12)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	odd.Architecture.Vocab = 50177 // padded to 50,240, which 3 does not divide
	if diff := cmp.Diff([]int{1, 2, 4}, find(t, "vllm").TensorSizes(odd, 12)); diff != "" {
		t.Error(diff)
	}
	form := find(t, "vllm").WithDefaults(odd, estimate.Serving{Tensor: 4, Context: 1024}, Accelerator{})
	if _, err := odd.PerDevice(form); err != nil {
		t.Error(err)
	}
	refused := map[string]string{
		"vllm":   "the vocabulary of model odd, 50177, does not divide over 3 devices",
		"mindie": "mindie divides over 1, 2, 4, 8, … devices, not over 3",
	}
	for name, want := range refused {
		if err := find(t, name).CheckTensor(odd, 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
