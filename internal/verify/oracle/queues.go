package oracle

import "github.com/berth-project/berth/cluster"

// fork is where the branches part: the queues from there down to the job's and to
// the victim's. Both are empty where the leaf is the same.
func fork(j, victim *job) (own, others []*queue) {
	own, others = j.branch, victim.branch
	for len(own) > 0 && len(others) > 0 && own[0] == others[0] {
		own, others = own[1:], others[1:]
	}
	return own, others
}

// tierOf is the tier that the queue counts with for the request: Guaranteed only
// within its quota.
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

// tierOfVictim is the tier that the queue counts with for the unit, and whether it may
// lose it at all: a Guaranteed queue keeps its quota.
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

// losesQuota reports whether the queue is Guaranteed and below its quota of something
// that the victim held and the job does not request.
func (b *board) losesQuota(q *queue, asks, held vector) bool {
	for r := range held {
		if q.tier == cluster.TierGuaranteed && held[r] > 0 && asks[r] == 0 && b.used[q.index][r] < q.quota(r) {
			return true
		}
	}
	return false
}

// held is what the tasks of the unit hold, or held before they were evicted.
func held(u *unit) vector { return asked(u.tasks) }

func (b *board) sparesPreempt(e *ending, u *unit) string {
	own, others := fork(e.job, u.job)
	if len(own) == 0 || len(others) == 0 {
		if u.job.Priority < e.job.Priority {
			return ""
		}
		return "preempt: it matters as much in the same queue"
	}
	tier, may := b.tierOfVictim(others[0], held(u))
	if !may {
		return "preempt: its Guaranteed queue would hold less than its quota"
	}
	if tier.Rank() > b.tierOf(own[0], e.asks).Rank() {
		return ""
	}
	return "preempt: its queue is of no weaker tier"
}

func (b *board) sparesReclaim(e *ending, u *unit) string {
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
		return "reclaim 1: its queue is of a stronger tier"
	}
	for _, q := range e.job.branch[:len(e.job.branch)-len(own)] {
		if b.losesQuota(q, e.asks, held) {
			return "reclaim 1: a Guaranteed queue above both would hold less than its quota"
		}
	}
	rule := b.shares(e, own, others, held)
	if rule != "" && e.last && (b.quotaFirst(e, own, others, held) || b.moreEven(e, own, others, held)) {
		return ""
	}
	return rule
}

// shares is rules 2 and 3.
func (b *board) shares(e *ending, own, others []*queue, held vector) string {
	for _, q := range own {
		for r := range e.asks {
			if b.divided[r] && e.asks[r] > 0 && b.used[q.index][r]+e.asks[r] > q.share[r] {
				return "reclaim 2: the job's queue would be above its share"
			}
		}
	}
	for r := range e.asks {
		if b.concerns(e, held, r) && b.keep(others, r, func(q *queue) int64 { return q.share[r] }) {
			return ""
		}
	}
	return "reclaim 3: its queue would be below its share"
}

// concerns reports whether the job requests the resource, the victim holds some, and it is divided.
func (b *board) concerns(e *ending, held vector, r int) bool {
	return b.divided[r] && e.asks[r] > 0 && held[r] > 0
}

// keep reports whether every queue has so much left.
func (b *board) keep(queues []*queue, r int, least func(*queue) int64) bool {
	for _, q := range queues {
		if b.used[q.index][r] < least(q) {
			return false
		}
	}
	return true
}

// never reports whether no plan can evict tasks of the job, whatever else leaves.
func (b *board) never(r *request, j *job) bool {
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
		if b.divided[i] && r.asks[i] > 0 && (r.last || b.keep(others, i, func(q *queue) int64 { return q.share[i] + 1 })) {
			return false
		}
	}
	return true
}
