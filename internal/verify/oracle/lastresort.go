package oracle

import (
	"cmp"
	"math/bits"
	"slices"
)

// quotaFirst reports whether rule 4 allows the victim: the job's queues end within their
// quotas, and the victim's queues hold more than their quotas until their last victim is
// evicted. The order is free, so that the largest victim may be the last.
func (b *board) quotaFirst(e *ending, own, others []*queue, held vector) bool {
	return b.withinQuota(e, own) && b.every(e, held, func(r int) bool {
		return !slices.ContainsFunc(others, func(q *queue) bool {
			return b.used[q.index][r]+b.largest(e, q, r) <= max(0, q.quota(r))
		})
	})
}

// largest returns how much of the resource the largest victim of the queue held. A victim
// is a task, or a job that is evicted as a whole.
func (b *board) largest(e *ending, q *queue, r int) (most int64) {
	for _, j := range b.jobs {
		if !slices.Contains(j.branch, q) {
			continue
		}
		evicted := b.members(e.plan.evicted & j.set())
		for _, t := range evicted {
			most = max(most, asked([]*task{t})[r])
		}
		if b.bound(j) == 0 {
			most = max(most, asked(evicted)[r])
		}
	}
	return most
}

// every reports whether the condition is true for every divided resource that the job
// requests and the victim holds, and that there is at least one.
func (b *board) every(e *ending, held vector, is func(r int) bool) bool {
	some := false
	for r := range e.asks {
		if b.concerns(e, held, r) {
			if some = true; !is(r) {
				return false
			}
		}
	}
	return some
}

// withinQuota reports whether the queues are within their quotas with the job. A queue
// without a quota has a quota of 0.
func (b *board) withinQuota(e *ending, queues []*queue) bool {
	for _, q := range queues {
		for r := range e.asks {
			if b.divided[r] && e.asks[r] > 0 && b.used[q.index][r]+e.asks[r] > max(0, q.quota(r)) {
				return false
			}
		}
	}
	return true
}

// moreEven reports whether rule 5 allows one victim: the ratio of the job's queue ends
// lower than that of the victim's queue was, quotas are kept, and below the fork the queue
// with the highest ratio loses first.
func (b *board) moreEven(e *ending, own, others []*queue, held vector) bool {
	if b.ratioOf(own[0], b.used[own[0].index].plus(e.asks, +1)).compare(b.ratioOf(others[0], e.before[others[0].index])) >= 0 {
		return false
	}
	if !b.withinQuota(e, own) && !b.every(e, held, func(r int) bool { return b.allHold(others, r, func(q *queue) int64 { return q.quota(r) }) }) {
		return false
	}
	for r := range e.asks {
		if b.concerns(e, held, r) && b.highest(e, others[1:], r) {
			return true
		}
	}
	return false
}

// highest reports whether no sibling that still has preemptible tasks ends with a higher
// ratio than the queues had before the plan.
func (b *board) highest(e *ending, queues []*queue, r int) bool {
	for _, q := range queues {
		before := b.ratioOf(q, e.before[q.index])
		for _, o := range q.parent.children {
			if o != q && b.used[o.index][r] > b.firm[o.index][r] && b.ratioOf(o, b.used[o.index]).compare(before) > 0 {
				return false
			}
		}
	}
	return true
}

// ratio is what a queue holds divided by its fair share.
type ratio struct{ held, deserved, total int64 }

// ratioOf returns the ratio of the resource for which it is highest.
func (w *table) ratioOf(q *queue, used vector) ratio {
	top := ratio{total: 1}
	for r := range used {
		if one := (ratio{used[r], q.share[r], w.total[r]}); w.divided[r] && used[r] > 0 && one.compare(top) > 0 {
			top = one
		}
	}
	return top
}

// compare orders ratios. The ratio of a queue that holds a resource without a share of it
// is higher than all others.
func (a ratio) compare(o ratio) int {
	none := func(r ratio) bool { return r.held > 0 && r.deserved <= 0 }
	switch {
	case none(a) && none(o):
		return compareProducts(a.held, o.total, o.held, a.total)
	case none(a):
		return 1
	case none(o):
		return -1
	}
	return compareProducts(a.held, max(1, o.deserved), o.held, max(1, a.deserved))
}

// compareProducts compares a times b with c times d.
func compareProducts(a, b, c, d int64) int {
	x, y := bits.Mul64(uint64(a), uint64(b))
	z, w := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(x, z), cmp.Compare(y, w))
}

// lastResortViolation returns the rule of the last resort that forbids the plan, or "" if
// it is allowed or too large to check.
func (g *checker) lastResortViolation(t *turn, p *plan) string {
	b := g.booked
	j := b.find(t.job)
	found, err := false, error(nil)
	if b.hasAnyMinimum(j) { // the turn is for this surplus task only
		_, found, err = b.cheapestFor(p.request, all, nil)
	} else {
		_, found, err = b.cheapest(g.kind, j, nil, false)
	}
	if found {
		return "last resort: another plan follows the rules"
	}
	if err != nil {
		g.unchecked++
	}
	return ""
}

// balanced reports whether rule 5 allows the plan as a whole: with it, more is held within
// shares than without it or, if that is equal, the siblings reach lower ratios.
func (b *board) balanced(e *ending) bool {
	levels := b.uneven(e)
	if levels == nil {
		return true
	}
	with := slices.Clone(b.used)
	for _, q := range e.job.branch {
		with[q.index] = with[q.index].plus(e.asks, +1)
	}
	if c := cmp.Compare(b.withinShares(with), b.withinShares(e.before)); c != 0 {
		return c > 0
	}
	for level, lower := range levels {
		q := e.job.branch[level]
		if c := slices.CompareFunc(b.reaches(q, with), b.reaches(q, e.before), ratio.compare); c > 0 || c == 0 && lower {
			return false
		}
	}
	return true
}

// uneven returns the levels of the job's branch at which the siblings must not reach higher
// ratios with the plan: all levels down to the last one at which only rule 5 allows a
// victim. At levels with true they must reach lower ratios. It returns nil if rule 5 is not
// needed.
func (b *board) uneven(e *ending) []bool {
	lower := make([]bool, len(e.job.branch))
	deepest := -1
	for _, v := range b.members(e.plan.evicted) {
		own, others := fork(e.job, v.job)
		fair := func(u unit) bool {
			return e.given[v] == Preempt || e.given == nil && e.kind.has(Preempt) && b.preemptViolation(e, &u) == "" ||
				b.sharesViolation(e, own, others, held(&u)) == "" || b.quotaFirst(e, own, others, held(&u))
		}
		if len(own) == 0 || fair(unit{job: v.job, tasks: []*task{v}}) || b.bound(v.job) == 0 && fair(unit{job: v.job, tasks: b.members(e.plan.evicted & v.job.set())}) {
			continue
		}
		level := len(lower) - len(own)
		lower[level], deepest = true, max(deepest, level)
	}
	if deepest < 0 {
		return nil
	}
	return lower[:deepest+1]
}

// withinShares returns what leaf queues hold within their shares, in millionths of the
// total, summed over resources.
func (w *table) withinShares(used []vector) (sum int64) {
	for _, q := range w.queues {
		for r := range names {
			if w.divided[r] && len(q.children) == 0 && w.total[r] > 0 {
				sum += min(used[q.index][r], q.share[r]) * 1_000_000 / w.total[r]
			}
		}
	}
	return sum
}

// reaches returns the ratios that the siblings of the queue would have if each got all that
// is idle, up to its request. The highest is first.
func (w *table) reaches(q *queue, used []vector) (out []ratio) {
	idle := w.total
	for _, o := range w.queues {
		if o.parent == nil {
			idle = idle.plus(used[o.index], -1)
		}
	}
	for _, o := range w.queues {
		if o.parent != q.parent {
			continue
		}
		held := used[o.index]
		for r := range held {
			held[r] = min(held[r]+max(0, idle[r]), max(held[r], o.request[r]))
		}
		out = append(out, w.ratioOf(o, held))
	}
	slices.SortFunc(out, func(a, b ratio) int { return b.compare(a) })
	return out
}
