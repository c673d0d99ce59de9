package oracle

import (
	"cmp"
	"slices"
)

// balance has rule 5, as far as it is about the plan as a whole.
type balance struct {
	ending  *ending
	victims *victimRules
	resort  *lastResort
	shares  *shares
}

// isBetter reports whether rule 5 allows the plan as a whole: with it, more is held within
// shares than without it or, if that is equal, the siblings reach lower ratios.
func (b *balance) isBetter() bool {
	levels := b.levels()
	if levels == nil {
		return true
	}
	before, with := b.ending.before, b.ending.withMinimum()
	if c := cmp.Compare(b.shares.heldWithin(with), b.shares.heldWithin(before)); c != 0 {
		return c > 0
	}
	for level, mustFall := range levels {
		q := b.ending.request().form.branch[level]
		if c := slices.CompareFunc(b.shares.reaches(q, with), b.shares.reaches(q, before), ratio.compare); c > 0 || c == 0 && mustFall {
			return false
		}
	}
	return true
}

// levels returns the levels of the job's branch at which the siblings must not reach higher
// ratios with the plan: all levels down to the last one at which only rule 5 allows a victim.
// At levels with true they must reach lower ratios. It returns nil if the plan does not need
// rule 5.
func (b *balance) levels() []bool {
	e := b.ending
	mustFall := make([]bool, len(e.request().form.branch))
	deepest := -1
	for _, t := range e.objects.members(e.plan.evicted) {
		own, _ := fork(e.request().form, t.form)
		if len(own) == 0 || !b.needsRule5(t) {
			continue
		}
		level := len(mustFall) - len(own)
		mustFall[level], deepest = true, max(deepest, level)
	}
	if deepest < 0 {
		return nil
	}
	return mustFall[:deepest+1]
}

// needsRule5 reports whether no other rule allows the eviction of the task, neither alone nor, if
// its job is evicted as a whole, together with the other evicted tasks of the job.
func (b *balance) needsRule5(t *task) bool {
	e := b.ending
	if b.isAllowedWithout5(t, []*task{t}) {
		return false
	}
	return e.placement.bound(t.form) != 0 || !b.isAllowedWithout5(t, e.objects.members(e.plan.evicted&t.form.set()))
}

// isAllowedWithout5 reports whether Preempt or rules 2 to 4 allow the eviction of the tasks,
// one of which is t.
func (b *balance) isAllowedWithout5(t *task, tasks []*task) bool {
	e := b.ending
	v := victim{form: t.form, tasks: tasks}
	own, others := fork(e.request().form, t.form)
	return e.evictedBy[t] == Preempt || e.evictedBy == nil && e.request().kind.has(Preempt) && b.victims.preemptViolation(&v) == "" ||
		b.victims.sharesViolation(own, others, v.held()) == "" || b.resort.quotaFirst(own, others, v.held())
}
