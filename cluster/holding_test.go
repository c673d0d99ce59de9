package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
)

// What a Guaranteed queue got as Guaranteed it holds as Guaranteed: otherwise a
// Standard one would take it back.
func TestTierOfVictims(t *testing.T) {
	devices := func(n int64) func(string) int64 {
		return func(resource string) int64 {
			if resource == "nvidia.com/gpu" {
				return n
			}
			return 0
		}
	}
	tests := map[string]struct {
		quota    cluster.Resources
		used     int64 // devices before
		asks, as cluster.Tier
	}{
		"inside the quota":                   {quota: cluster.Resources{{Name: "nvidia.com/gpu", Value: 2}}, used: 1, asks: cluster.TierGuaranteed, as: cluster.TierGuaranteed},
		"beyond the quota":                   {quota: cluster.Resources{{Name: "nvidia.com/gpu", Value: 2}}, used: 2, asks: cluster.TierStandard, as: cluster.TierStandard},
		"no quota at all":                    {used: 5, asks: cluster.TierGuaranteed, as: cluster.TierGuaranteed},
		"a quota of something else":          {quota: cluster.Resources{{Name: "cpu", Value: 4}}, used: 5, asks: cluster.TierGuaranteed, as: cluster.TierGuaranteed},
		"a quota of that and something else": {quota: cluster.Resources{{Name: "cpu", Value: 4}, {Name: "nvidia.com/gpu", Value: 2}}, used: 2, asks: cluster.TierStandard, as: cluster.TierStandard},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := cluster.NewState()
			q := &cluster.Queue{Name: "q", Tier: cluster.TierGuaranteed, Quota: tt.quota}
			if err := s.SetQueue(q); err != nil {
				t.Fatal(err)
			}
			q.Used = cluster.Resources{{Name: "nvidia.com/gpu", Value: tt.used}}
			if got := s.TierWith(q, devices(1)); got != tt.asks {
				t.Errorf("for one more: have %s, want %s", got, tt.asks)
			}
			q.Used[0].Value++
			if got, _ := s.TierWithout(q, devices(1)); got != tt.as {
				t.Errorf("for the one that it has got: have %s, want %s", got, tt.as)
			}
		})
	}
}

func TestFork(t *testing.T) {
	s := cluster.NewState()
	for _, q := range []cluster.Queue{
		{Name: "a"}, {Name: "a-1", Parent: "a"}, {Name: "a-1-x", Parent: "a-1"}, {Name: "a-2", Parent: "a"}, {Name: "b"}, {Name: "b-1", Parent: "b"},
	} {
		if err := s.SetQueue(&q); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct{ left, right, a, b string }{
		"siblings":                    {"a-1", "a-2", "a-1", "a-2"},
		"roots":                       {"a", "b", "a", "b"},
		"one is deeper":               {"a-1-x", "a-2", "a-1", "a-2"},
		"one is deeper, on the right": {"a-2", "a-1-x", "a-2", "a-1"},
		"two trees":                   {"b-1", "a-1-x", "b", "a"},
		"one above the other":         {"a", "a-1-x", "", ""},
		"one below the other":         {"a-1-x", "a", "", ""},
		"one and the same":            {"a-1", "a-1", "", ""},
		"not there":                   {"a-1", "c", "", ""},
	}
	name := func(q *cluster.Queue) string {
		if q == nil {
			return ""
		}
		return q.Name
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			left, right := s.Queue(tt.left), s.Queue(tt.right)
			if a, b := s.Fork(left, right); name(a) != tt.a || name(b) != tt.b {
				t.Errorf("have %q and %q, want %q and %q", name(a), name(b), tt.a, tt.b)
			}
			if got := testing.AllocsPerRun(10, func() { s.Fork(left, right) }); got != 0 {
				t.Errorf("%v allocations, want none", got)
			}
		})
	}
}
