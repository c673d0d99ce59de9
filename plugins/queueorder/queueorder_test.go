package queueorder

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/fixture"
)

func TestCompare(t *testing.T) {
	tests := map[string][]cluster.Queue{ // each in the order it should come out
		"tier first": {
			{Name: "z", Tier: cluster.TierGuaranteed},
			{Name: "y", Tier: cluster.TierStandard, Priority: 5},
			{Name: "x", Tier: cluster.TierScavenger, Priority: 9},
		},
		"no tier is standard": {
			{Name: "b", Tier: cluster.TierGuaranteed},
			{Name: "a", Created: 1},
			{Name: "c", Created: 2, Tier: cluster.TierStandard},
			{Name: "0", Tier: cluster.TierScavenger},
		},
		"then priority, high first": {
			{Name: "c", Priority: 7, Created: 3},
			{Name: "b", Created: 2},
			{Name: "a", Priority: -7, Created: 1},
		},
		"then age, older first": {
			{Name: "c", Created: 1},
			{Name: "b", Created: 2},
			{Name: "a", Created: 3},
		},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			got := slices.Clone(want)
			slices.Reverse(got)
			slices.SortFunc(got, func(l, r cluster.Queue) int { return compare(&l, &r) })
			if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(cluster.Queue{})); d != "" {
				t.Errorf("order (-want +got):\n%s", d)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(fixture.Arguments(`{"by": "name"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
