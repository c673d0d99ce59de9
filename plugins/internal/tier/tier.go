// Package tier decides as which tier a queue counts: what a Guaranteed queue holds
// within its quota is Guaranteed, and what it holds beyond its quota is Standard.
package tier

import "github.com/berth-project/berth/cluster"

// With returns the tier of the queue for a job that requests more of its resources.
func With(s cluster.View, q *cluster.Queue, asks func(resource string) int64) cluster.Tier {
	if q.Tier != cluster.TierGuaranteed {
		return q.Tier
	}
	for _, quota := range s.Quotas(q) {
		if ask := asks(quota.Name); ask > 0 && q.Used.Of(quota.Name)+ask > quota.Value {
			return cluster.TierStandard
		}
	}
	return q.Tier
}

// Without returns the tier of the queue for a victim that would release what it holds. A
// victim that holds nothing of the resources in the quota counts as within the quota.
// The result keeps is true if the queue would hold less than its quota without the
// victim. The victim must then be protected.
func Without(s cluster.View, q *cluster.Queue, holds func(resource string) int64) (tier cluster.Tier, keeps bool) {
	if q.Tier != cluster.TierGuaranteed {
		return q.Tier, false
	}
	tier = cluster.TierGuaranteed
	for _, quota := range s.Quotas(q) {
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

// Weakest returns the weakest tier that the queue may count as.
func Weakest(q *cluster.Queue) cluster.Tier {
	if q.Tier == cluster.TierGuaranteed {
		return cluster.TierStandard
	}
	return q.Tier
}
