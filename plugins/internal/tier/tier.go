// Package tier decides which tier the use of a queue has: what a Guaranteed queue holds
// within its quota is Guaranteed, and what it holds beyond its quota is Standard. The use
// of any other queue has the tier of the queue.
package tier

import "github.com/berth-project/berth/cluster"

// WithJob returns the tier of the queue for a job that is not placed yet: Standard if the
// queue is Guaranteed and would hold more than its quota with the job. asks returns how
// much of a resource the job requests.
func WithJob(s cluster.View, q *cluster.Queue, asks func(resource string) int64) cluster.Tier {
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

// WithoutVictim returns the tier of the queue for a victim: Standard if the queue is
// Guaranteed and would still hold its quota without the victim. A victim that holds nothing
// of the resources in the quota counts as within the quota. holds returns how much of a
// resource the victim holds. The result protected is true if the queue is Guaranteed and would
// hold less than its quota without the victim. The victim must then not be evicted.
func WithoutVictim(s cluster.View, q *cluster.Queue, holds func(resource string) int64) (tier cluster.Tier, protected bool) {
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
