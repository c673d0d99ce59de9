package oracle

// victimRules has the rules about single victims: Preempt, Reclaim with rules 1 to 3 and, as
// the last resort, rules 4 and 5.
type victimRules struct {
	ending *ending
	resort *lastResort
}

// formViolation returns the rule that forbids the eviction of these tasks of the form, or "" if
// they may be evicted as victims, one after the other, in some order.
func (v *victimRules) formViolation(f *form, tasks taskSet) string {
	if tasks == 0 {
		return ""
	}
	why := "a gang is left below its minimum"
	for _, next := range v.nextVictims(f, tasks|v.ending.placement.bound(f)) {
		set := setOf(next.tasks)
		if set&^tasks != 0 {
			continue
		}
		rule := v.violation(&next)
		if rule == "" {
			if rule = v.formViolation(f, tasks&^set); rule == "" {
				return ""
			}
		}
		why = rule
	}
	return why
}

// nextVictims returns the victims of which one may be evicted next, if the given tasks of the
// form still run: each surplus task, and the whole job if not all of its tasks are surplus.
func (v *victimRules) nextVictims(f *form, running taskSet) (out []victim) {
	needed := false
	tasks := v.ending.objects.members(running)
	for _, t := range tasks {
		if f.isEnough(running &^ t.bit()) {
			out = append(out, victim{form: f, tasks: []*task{t}})
		} else {
			needed = true
		}
	}
	if needed {
		out = append(out, victim{form: f, tasks: tasks, whole: true})
	}
	return out
}

// violation returns the rule that forbids the eviction of the victim, or "" if a plugin may
// evict it.
func (v *victimRules) violation(next *victim) string {
	why := "no plugin may evict it"
	for _, plugin := range []Kind{Reclaim, Preempt} {
		if !v.ending.mayUse(plugin, next.tasks) {
			continue
		}
		if v.ending.objects.now-next.started() < minRun(plugin, next.form.leaf()) {
			why = "its minimum run time has not passed"
			continue
		}
		rule := ""
		if plugin == Reclaim {
			rule = v.reclaimViolation(next)
		} else {
			rule = v.preemptViolation(next)
		}
		if rule == "" {
			return ""
		}
		why = rule
	}
	return why
}

// preemptViolation returns why Preempt may not evict the victim, or "".
func (v *victimRules) preemptViolation(next *victim) string {
	r, queues := v.ending.request(), v.ending.queues()
	own, others := fork(r.form, next.form)
	if len(own) == 0 || len(others) == 0 {
		if next.form.job.Priority < r.form.job.Priority {
			return ""
		}
		return "preempt: its priority is not lower, and its queue is the same"
	}
	tier, may := queues.tierOfVictim(others[0], next.held())
	if !may {
		return "preempt: its Guaranteed queue would hold less than its quota"
	}
	if tier.Rank() > queues.tierFor(own[0], r.amounts).Rank() {
		return ""
	}
	return "preempt: the tier of its queue is not weaker"
}

// reclaimViolation returns why Reclaim may not evict the victim, or "".
func (v *victimRules) reclaimViolation(next *victim) string {
	r, queues := v.ending.request(), v.ending.queues()
	own, others := fork(r.form, next.form)
	if len(own) == 0 || len(others) == 0 {
		return "reclaim: it is in the same queue"
	}
	held := next.held()
	tier, may := queues.tierOfVictim(others[0], held)
	if !may {
		return "reclaim: its Guaranteed queue would hold less than its quota"
	}
	if tier.Rank() < queues.tierFor(own[0], r.amounts).Rank() {
		return "reclaim 1: the tier of its queue is stronger"
	}
	for _, q := range r.form.branch[:len(r.form.branch)-len(own)] {
		if queues.losesQuota(q, r.amounts, held) {
			return "reclaim 1: a Guaranteed common ancestor would hold less than its quota"
		}
	}
	rule := v.sharesViolation(own, others, held)
	if rule != "" && r.lastResort && (v.resort.quotaFirst(own, others, held) || v.resort.moreEven(own, others, held)) {
		return ""
	}
	return rule
}

// sharesViolation returns which of rules 2 and 3 forbids the eviction of a victim that held
// the given amounts, or "".
func (v *victimRules) sharesViolation(own, others []*queue, held vector) string {
	queues := v.ending.queues()
	if !queues.areWithinShares(own, v.ending.request().amounts) {
		return "reclaim 2: the job's queue would be above its share"
	}
	for r := range held {
		if v.ending.isContested(held, r) && queues.holdAtLeast(others, r, func(q *queue) int64 { return q.share[r] }) {
			return ""
		}
	}
	return "reclaim 3: its queue would be below its share"
}
