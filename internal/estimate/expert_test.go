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
		"parts of experts":     {Serving{Tensor: 2, Data: 5, ExpertsOverRanks: true}, experts/2 - experts/10},
		"43 of 128 experts":    {Serving{Data: 3, Expert: true, UnevenExperts: true}, experts - experts*43/128},
		"four ranks":           {Serving{Data: 4, Expert: true}, experts - experts/4},
		"with tensor":          {Serving{Tensor: 2, Data: 4, Expert: true}, experts/2 - experts/8},
		"with pipeline stages": {Serving{Tensor: 2, Pipeline: 2, Data: 4, Expert: true}, experts/4 - experts/16},
	}
	for name, tt := range tests {
		got := m.expertSaving(tt.serving)
		if got > tt.exact || got < tt.exact*9/10 {
			t.Errorf("%s: %d bytes, exactly %d", name, got, tt.exact)
		}
	}
	// 128 experts on three devices: one of them has 43, which is more than a third.
	if got, more := m.expertSaving(Serving{Tensor: 3, Expert: true, UnevenExperts: true}), experts/3-experts*43/128; got > more || got < more*11/10 {
		t.Errorf("three devices: %d bytes, exactly %d", got, more)
	}
	dense := mixture()
	dense.Architecture.Experts = 0
	if got := dense.expertSaving(Serving{Data: 4, Expert: true}); got != 0 {
		t.Errorf("a model without experts saves %d bytes", got)
	}
}

func TestCheckExperts(t *testing.T) {
	tests := map[string]Serving{
		"": {Tensor: 2, Data: 4, Expert: true},
		"the 128 experts of model mixture do not divide over 12 devices":                                                  {Tensor: 4, Data: 3, Expert: true},
		"model mixture has 128 experts, which are fewer than 132 devices":                                                 {Tensor: 4, Data: 33, Expert: true, UnevenExperts: true},
		"each expert of model mixture is 750 wide, which 8 devices (tensor × data) do not divide; set parallelism.expert": {Tensor: 2, Data: 4, ExpertsOverRanks: true},
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

// The part of the overhead that follows from the weights is that of the weights that a device
// holds. If experts are quantised as they are loaded, less is saved.
func TestExpertsInPerDevice(t *testing.T) {
	m := mixture()
	m.Weights.Plain = m.Weights.Total()
	for _, bits := range []int{16, 8} {
		s := Serving{Tensor: 2, Data: 4, Expert: true, WeightBits: bits}
		got, err := m.PerDevice(s)
		if err != nil {
			t.Fatal(err)
		}
		const experts, others = int64(48) * 128 * 3 * 2000 * 750, int64(48) * 2000 * 24 * 200
		least := cluster.Bytes((experts/8 + others/2) * int64(bits) / 8)
		if got.Weights < least || got.Weights > least*13/10 || got.Overhead != got.Weights/128 {
			t.Errorf("%d bits: %+v, want at least %d of weights", bits, got, least)
		}
	}
}
