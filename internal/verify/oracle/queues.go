package oracle

import "github.com/berth-project/berth/cluster"

// fork returns the parts of the two branches below their lowest common ancestor, down to
// the job's and the victim's queue. Both are empty if the queue is the same.
func fork(j, victim *job) (own, others []*queue) {
	own, others = j.branch, victim.branch
	for len(own) > 0 && len(others) > 0 && own[0] == others[0] {
		own, others = own[1:], others[1:]
	}
	return own, others
}

// tierOf returns the tier of the queue for the request. A Guaranteed queue that exceeds its
// quota with the request counts as Standard.
func (b *board) tierOf(q *queue, asks vector) cluster.Tier {
	if q.tier != cluster.TierGuaranteed {
		return q.tier
	}
	for r := range asks {
		if quota := q.quota(r); quota >= 0 && asks[r] > 0 && b.used[q.index][r]+asks[r] > quota {
			return cluster.TierStandard
		}
	}
	return q.tier
}

// tierOfVictim returns the tier of the queue for a victim, and whether the queue may lose
// the victim at all: a Guaranteed queue keeps its quota.
func (b *board) tierOfVictim(q *queue, held vector) (cluster.Tier, bool) {
	if q.tier != cluster.TierGuaranteed {
		return q.tier, true
	}
	tier := q.tier
	for r := range held {
		quota := q.quota(r)
		if quota < 0 || held[r] == 0 {
			continue
		}
		if b.used[q.index][r] < quota {
			return q.tier, false
		}
		tier = cluster.TierStandard
	}
	return tier, true
}

// losesQuota reports whether the queue is Guaranteed and below its quota of a resource that
// the victim held and the job does not request.
func (b *board) losesQuota(q *queue, asks, held vector) bool {
	for r := range held {
		if q.tier == cluster.TierGuaranteed && held[r] > 0 && asks[r] == 0 && b.used[q.index][r] < q.quota(r) {
			return true
		}
	}
	return false
}

// held returns what the tasks of the unit hold, or held before they were evicted.
func held(u *unit) vector { return asked(u.tasks) }

func (b *board) preemptViolation(e *ending, u *unit) string {
	own, others := fork(e.job, u.job)
	if len(own) == 0 || len(others) == 0 {
		if u.job.Priority < e.job.Priority {
			return ""
		}
		return "preempt: its priority is not lower, and its queue is the same"
	}
	tier, may := b.tierOfVictim(others[0], held(u))
	if !may {
		return "preempt: its Guaranteed queue would hold less than its quota"
	}
	if tier.Rank() > b.tierOf(own[0], e.asks).Rank() {
		return ""
	}
	return "preempt: the tier of its queue is not weaker"
}

func (b *board) reclaimViolation(e *ending, u *unit) string {
	own, others := fork(e.job, u.job)
	if len(own) == 0 || len(others) == 0 {
		return "reclaim: it is in the same queue"
	}
	held := held(u)
	tier, may := b.tierOfVictim(others[0], held)
	if !may {
		return "reclaim: its Guaranteed queue would hold less than its quota"
	}
	if tier.Rank() < b.tierOf(own[0], e.asks).Rank() {
		return "reclaim 1: the tier of its queue is stronger"
	}
	for _, q := range e.job.branch[:len(e.job.branch)-len(own)] {
		if b.losesQuota(q, e.asks, held) {
			return "reclaim 1: a Guaranteed common ancestor would hold less than its quota"
		}
	}
	rule := b.sharesViolation(e, own, others, held)
	if rule != "" && e.last && (b.quotaFirst(e, own, others, held) || b.moreEven(e, own, others, held)) {
		return ""
	}
	return rule
}

// sharesViolation returns which of rules 2 and 3 forbids the victim, or "".
func (b *board) sharesViolation(e *ending, own, others []*queue, held vector) string {
	for _, q := range own {
		for r := range e.asks {
			if b.divided[r] && e.asks[r] > 0 && b.used[q.index][r]+e.asks[r] > q.share[r] {
				return "reclaim 2: the job's queue would be above its share"
			}
		}
	}
	for r := range e.asks {
		if b.concerns(e, held, r) && b.allHold(others, r, func(q *queue) int64 { return q.share[r] }) {
			return ""
		}
	}
	return "reclaim 3: its queue would be below its share"
}

// concerns reports whether the resource is divided among queues, the job requests it and
// the victim holds some of it.
func (b *board) concerns(e *ending, held vector, r int) bool {
	return b.divided[r] && e.asks[r] > 0 && held[r] > 0
}

// allHold reports whether every queue holds at least the given amount.
func (b *board) allHold(queues []*queue, r int, least func(*queue) int64) bool {
	for _, q := range queues {
		if b.used[q.index][r] < least(q) {
			return false
		}
	}
	return true
}

// cannotEvict reports whether no plan for the request can evict tasks of the job.
func (b *board) cannotEvict(r *request, j *job) bool {
	own, others := fork(r.job, j)
	if j.Job == r.job.Job || !r.kind.has(Reclaim) && !r.kind.has(Preempt) {
		return true
	}
	if len(own) == 0 || len(others) == 0 {
		return !r.kind.has(Preempt) || j.Priority >= r.job.Priority
	}
	weakest := others[0].tier
	if weakest == cluster.TierGuaranteed {
		weakest = cluster.TierStandard
	}
	if r.kind.has(Preempt) && weakest.Rank() > own[0].tier.Rank() {
		return false
	}
	if !r.kind.has(Reclaim) || weakest.Rank() < own[0].tier.Rank() {
		return true
	}
	for i := range r.asks {
		if b.divided[i] && r.asks[i] > 0 && (r.last || b.allHold(others, i, func(q *queue) int64 { return q.share[i] + 1 })) {
			return false
		}
	}
	return true
}
