package oracle

import "slices"

// lastResort has rules 4 and 5, as far as they are about one victim. own and others are the
// queues of the job and of the victim below their fork.
type lastResort struct {
	ending *ending
	shares *shares
}

// quotaFirst reports whether rule 4 allows the victim: the queues of the job end within
// their quotas, and the queues of the victim hold more than their quotas until their last
// victim is evicted. The order of the evictions is free, so that the largest victim may be
// the last.
func (l *lastResort) quotaFirst(own, others []*queue, held vector) bool {
	e := l.ending
	return e.queues().areWithinQuotas(own, e.request().amounts) && e.everyContested(held, func(r int) bool {
		return e.queues().holdAtLeast(others, r, func(q *queue) int64 { return max(0, q.quota(r)) - e.largestVictim(q, r) + 1 })
	})
}

// moreEven reports whether rule 5 allows the victim: the ratio of the job's queue ends lower
// than the ratio of the victim's queue was, quotas are kept, and below the fork the queue
// with the highest ratio loses first.
func (l *lastResort) moreEven(own, others []*queue, held vector) bool {
	e := l.ending
	amounts := e.request().amounts
	ends, was := l.shares.ratioOf(own[0], e.queues().with(own[0], amounts)), l.shares.ratioOf(others[0], e.before[others[0].index])
	if ends.compare(was) >= 0 {
		return false
	}
	keepQuotas := func(r int) bool {
		return e.queues().holdAtLeast(others, r, func(q *queue) int64 { return q.quota(r) })
	}
	if !e.queues().areWithinQuotas(own, amounts) && !e.everyContested(held, keepQuotas) {
		return false
	}
	for r := range amounts {
		if e.isContested(held, r) && l.wereHighest(others[1:], r) {
			return true
		}
	}
	return false
}

// wereHighest reports whether no sibling of the queues that still has preemptible tasks ends
// with a higher ratio than the queue had before the plan.
func (l *lastResort) wereHighest(queues []*queue, r int) bool {
	e := l.ending
	return !slices.ContainsFunc(queues, func(q *queue) bool {
		before := l.shares.ratioOf(q, e.before[q.index])
		return slices.ContainsFunc(q.parent.children, func(o *queue) bool {
			return o != q && e.queues().hasPreemptible(o, r) && l.shares.ratioOf(o, e.queues().used[o.index]).compare(before) > 0
		})
	})
}
