package estimate

import (
	"testing"

	"github.com/berth-project/berth/cluster"
)

// mixture returns a model of 48 layers with 128 experts of 4.5 million numbers each: 27.65
// billion numbers of 16 bits, 51.5 GiB. Attention has 0.45 billion numbers.
func mixture() *Model {
	a := &Architecture{Layers: 48, Hidden: 2000, Intermediate: 6000, Width: 750, Heads: 16, KVHeads: 8, HeadDim: 100, Vocab: 32000, Experts: 128, Active: 8, MaxContext: 4096}
	experts := int64(48) * 128 * 3 * 2000 * 750
	attention := int64(48) * 2000 * 24 * 200
	return &Model{Name: "mixture", Architecture: a, Weights: Weights{Layers: cluster.Bytes(2 * (experts + attention)), Bits: 1600}}
}

// Each device holds at most its part of the experts less, and never less than that part.
func TestExpertSaving(t *testing.T) {
	const experts = cluster.Bytes(2) * 48 * 128 * 3 * 2000 * 750
	m := mixture()
	tests := map[string]struct {
		serving Serving
		exact   cluster.Bytes // how much each device really saves
	}{
		"no ranks":             {Serving{Tensor: 2, Expert: true}, 0},
		"not divided":          {Serving{Tensor: 2, Data: 4}, 0},
		"four ranks":           {Serving{Data: 4, Expert: true}, experts - experts/4},
		"with tensor":          {Serving{Tensor: 2, Data: 4, Expert: true}, experts/2 - experts/8},
		"with pipeline stages": {Serving{Tensor: 2, Pipeline: 2, Data: 4, Expert: true}, experts/4 - experts/16},
	}
	for name, tt := range tests {
		got := m.ExpertSaving(tt.serving)
		if got > tt.exact || got < tt.exact*9/10 {
			t.Errorf("%s: %d bytes, exactly %d", name, got, tt.exact)
		}
	}
	dense := mixture()
	dense.Architecture.Experts = 0
	if got := dense.ExpertSaving(Serving{Data: 4, Expert: true}); got != 0 {
		t.Errorf("a model without experts saves %d bytes", got)
	}
}

func TestCheckExperts(t *testing.T) {
	tests := map[string]Serving{
		"": {Tensor: 2, Data: 4, Expert: true},
		"the 128 experts of model mixture do not divide over 12 devices": {Tensor: 4, Data: 3, Expert: true},
	}
	for want, s := range tests {
		got := ""
		if err := mixture().CheckExperts(s); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
