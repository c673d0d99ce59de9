// Package tier says what the tier of a queue is worth: what a Guaranteed queue
// holds within its quota is Guaranteed, and what it holds beyond is Standard.
package tier

import "github.com/berth-project/berth/cluster"

// With is the tier of the queue for a job that requests so much more.
func With(s cluster.View, q *cluster.Queue, asks func(resource string) int64) cluster.Tier {
	if q.Tier != cluster.TierGuaranteed {
		return q.Tier
	}
	for _, quota := range s.Deserved(q) {
		if ask := asks(quota.Name); ask > 0 && q.Used.Of(quota.Name)+ask > quota.Value {
			return cluster.TierStandard
		}
	}
	return q.Tier
}

// Without is the tier of the queue for a victim that would be evicted and give back
// what it holds. A victim that holds nothing that the quota names is within it. Keeps:
// without the victim the queue would hold less than its quota, so the victim is
// protected.
func Without(s cluster.View, q *cluster.Queue, holds func(resource string) int64) (tier cluster.Tier, keeps bool) {
	if q.Tier != cluster.TierGuaranteed {
		return q.Tier, false
	}
	tier = cluster.TierGuaranteed
	for _, quota := range s.Deserved(q) {
		held := holds(quota.Name)
		if held > 0 && q.Used.Of(quota.Name)-held < quota.Value {
			return cluster.TierGuaranteed, true
		}
		if held > 0 {
			tier = cluster.TierStandard
		}
	}
	return tier, false
}

// Weakest is the weakest tier that the queue may count as.
func Weakest(q *cluster.Queue) cluster.Tier {
	if q.Tier == cluster.TierGuaranteed {
		return cluster.TierStandard
	}
	return q.Tier
}
