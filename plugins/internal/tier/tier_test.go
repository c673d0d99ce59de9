package tier_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/plugins/internal/tier"
)

// If a job counts as Guaranteed when it is placed, it also counts as Guaranteed as a
// victim. Otherwise a Standard queue could take the room back.
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
			if err := s.Apply(cluster.QueuePut{Queue: cluster.Queue{Name: "q", Tier: cluster.TierGuaranteed, Quota: tt.quota}}); err != nil {
				t.Fatal(err)
			}
			q := s.Queue("q")
			q.Used = cluster.Resources{{Name: "nvidia.com/gpu", Value: tt.used}}
			if got := tier.WithJob(s.View(), q, devices(1)); got != tt.asks {
				t.Errorf("for one more: have %s, want %s", got, tt.asks)
			}
			q.Used[0].Value++
			if got, _ := tier.WithoutVictim(s.View(), q, devices(1)); got != tt.as {
				t.Errorf("for the one that it has got: have %s, want %s", got, tt.as)
			}
		})
	}
}
