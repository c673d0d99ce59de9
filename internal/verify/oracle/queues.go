package oracle

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// queueUse records what the queues hold, and compares it with their limits, quotas, shares
// and tiers.
type queueUse struct {
	divided [resources]bool // whether queues divide the resource
	used    []vector        // by queue, with everything that its children hold
	firm    []vector        // the part of used that is held by jobs that are not preemptible
}

func newQueueUse(o *objects) *queueUse {
	return &queueUse{divided: o.divided, used: make([]vector, len(o.queues)), firm: make([]vector, len(o.queues))}
}

// charge adds what a task of the form holds to the queues of the form or, if sign is -1,
// subtracts it.
func (u *queueUse) charge(f *form, held vector, sign int64) {
	for _, q := range f.branch {
		u.used[q.index] = u.used[q.index].plus(held, sign)
		if !f.job.Preemptible {
			u.firm[q.index] = u.firm[q.index].plus(held, sign)
		}
	}
}

// snapshot returns a copy of what the queues hold.
func (u *queueUse) snapshot() []vector { return slices.Clone(u.used) }

// with returns what the queue holds together with the amounts.
func (u *queueUse) with(q *queue, amounts vector) vector { return u.used[q.index].plus(amounts, +1) }

// violation returns the rule that the queues of the form break if they hold the amounts in
// addition, or "".
func (u *queueUse) violation(f *form, amounts vector) string {
	for _, q := range f.branch {
		for r := range amounts {
			if amounts[r] == 0 {
				continue
			}
			if l := q.limit[r]; l >= 0 && u.used[q.index][r]+amounts[r] > l {
				return "its queue exceeds its limit"
			}
			if l := q.declared[r]; l >= 0 && !f.job.Preemptible && u.firm[q.index][r]+amounts[r] > l {
				return "jobs that are not preemptible exceed the quota"
			}
		}
	}
	return ""
}

// allowsSurplus reports whether evictions are allowed for a surplus task of the form: its
// queue has a quota of a resource that the task requests, and the queue and all its
// ancestors stay within their quotas.
func (u *queueUse) allowsSurplus(f *form, amounts vector) bool {
	named := false
	for r := range amounts {
		if amounts[r] == 0 {
			continue
		}
		named = named || f.leaf().quota(r) >= 0
		for _, q := range f.branch {
			if quota := q.quota(r); quota >= 0 && u.used[q.index][r]+amounts[r] > quota {
				return false
			}
		}
	}
	return named
}

// tierFor returns the tier of the queue for a job that requests the amounts. A Guaranteed
// queue that would exceed its quota counts as Standard.
func (u *queueUse) tierFor(q *queue, amounts vector) cluster.Tier {
	if q.tier != cluster.TierGuaranteed {
		return q.tier
	}
	for r := range amounts {
		if quota := q.quota(r); quota >= 0 && amounts[r] > 0 && u.used[q.index][r]+amounts[r] > quota {
			return cluster.TierStandard
		}
	}
	return q.tier
}

// tierOfVictim returns the tier of the queue for a victim that held the given amounts, and
// whether the queue may lose the victim at all: a Guaranteed queue keeps its quota.
func (u *queueUse) tierOfVictim(q *queue, held vector) (cluster.Tier, bool) {
	if q.tier != cluster.TierGuaranteed {
		return q.tier, true
	}
	tier := q.tier
	for r := range held {
		quota := q.quota(r)
		if quota < 0 || held[r] == 0 {
			continue
		}
		if u.used[q.index][r] < quota {
			return q.tier, false
		}
		tier = cluster.TierStandard
	}
	return tier, true
}

// losesQuota reports whether the queue is Guaranteed and below its quota of a resource that
// the victim held and the job does not request.
func (u *queueUse) losesQuota(q *queue, amounts, held vector) bool {
	for r := range held {
		if q.tier == cluster.TierGuaranteed && held[r] > 0 && amounts[r] == 0 && u.used[q.index][r] < q.quota(r) {
			return true
		}
	}
	return false
}

// areWithinShares reports whether the queues stay within their shares of all divided
// resources if they hold the amounts in addition.
func (u *queueUse) areWithinShares(queues []*queue, amounts vector) bool {
	return u.areWithin(queues, amounts, func(q *queue, r int) int64 { return q.share[r] })
}

// areWithinQuotas is areWithinShares for quotas. A queue without a quota has a quota of 0.
func (u *queueUse) areWithinQuotas(queues []*queue, amounts vector) bool {
	return u.areWithin(queues, amounts, func(q *queue, r int) int64 { return max(0, q.quota(r)) })
}

func (u *queueUse) areWithin(queues []*queue, amounts vector, most func(q *queue, r int) int64) bool {
	for _, q := range queues {
		for r := range amounts {
			if u.divided[r] && amounts[r] > 0 && u.used[q.index][r]+amounts[r] > most(q, r) {
				return false
			}
		}
	}
	return true
}

// holdAtLeast reports whether every queue holds at least the given amount of the resource.
func (u *queueUse) holdAtLeast(queues []*queue, r int, least func(*queue) int64) bool {
	for _, q := range queues {
		if u.used[q.index][r] < least(q) {
			return false
		}
	}
	return true
}

// hasPreemptible reports whether preemptible jobs of the queue hold some of the resource.
func (u *queueUse) hasPreemptible(q *queue, r int) bool {
	return u.used[q.index][r] > u.firm[q.index][r]
}

// fork returns the parts of the two branches below their lowest common ancestor, from there
// down to the queues of the job and of the victim. Both are empty if the queue is the same.
func fork(job, victim *form) (own, others []*queue) {
	own, others = job.branch, victim.branch
	for len(own) > 0 && len(others) > 0 && own[0] == others[0] {
		own, others = own[1:], others[1:]
	}
	return own, others
}
