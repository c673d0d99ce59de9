package oracle

import "github.com/berth-project/berth/cluster"

// planRules decides which plans are legal.
type planRules struct {
	objects   *objects
	placement *placement
	history   *history
}

// violation returns the rule that forbids the plan, or "". All rules are checked against the
// State after the plan: the minimum is placed, evicted tasks hold nothing, and tasks that
// move hold as much as before. evictedBy has the plugin that evicts each task; if it is nil,
// any plugin that allows an eviction may make it.
func (r *planRules) violation(p *plan, evictedBy map[*task]Kind) string {
	for _, t := range r.objects.members(p.victims()) {
		if rule := r.protection(p.request, t); rule != "" {
			return rule
		}
	}
	if rule := r.jointViolation(p); rule != "" {
		return rule
	}
	e := &ending{objects: r.objects, placement: r.placement, plan: p, evictedBy: evictedBy, before: r.placement.queues.snapshot()}
	locations := r.placement.removeSet(p.evicted)
	defer r.placement.restore(p.evicted, locations)
	s := newShares(r.objects)
	resort := &lastResort{ending: e, shares: s}
	victims := &victimRules{ending: e, resort: resort}
	for _, f := range r.objects.jobs {
		if rule := victims.formViolation(f, f.set()&p.evicted); rule != "" {
			return rule
		}
	}
	b := &balance{ending: e, victims: victims, resort: resort, shares: s}
	if p.request.lastResort && !b.isBetter() {
		return "reclaim 5: no more is held within shares, and the queues do not become more even"
	}
	return ""
}

// protection returns why the task must not be evicted or moved for the request, or "".
func (r *planRules) protection(req *request, t *task) string {
	switch {
	case t.form.job == req.form.job:
		return "it is a task of the job itself"
	case !r.placement.isBound(t):
		return "it does not run"
	case !t.form.job.Preemptible:
		return "it is not preemptible"
	}
	return r.history.protection(req.form, t)
}

// jointViolation returns the rule about budgets, minima or moves that all victims together
// break, or "".
func (r *planRules) jointViolation(p *plan) string {
	for _, budget := range r.objects.budgets {
		if r.breaksBudget(budget, p.victims()) {
			return "its disruption budget would be violated"
		}
	}
	for _, f := range r.objects.jobs {
		own := r.placement.bound(f)
		evicted, moved := own&p.evicted, own&p.moved
		if evicted != 0 && !(evicted == own && moved == 0) && !f.isEnough(own&^evicted) {
			return "a gang is left below its minimum"
		}
		if moved != 0 && r.history.moved&f.set() != 0 && !f.isEnough(own&^evicted&^moved) {
			return "a gang that is already moving would move again"
		}
	}
	for _, t := range r.objects.members(p.moved) {
		if !p.request.kind.has(Consolidate) {
			return "no plugin may move it"
		}
		if r.objects.now-t.task.Started < minRun(Consolidate, t.form.leaf()) {
			return "its minimum run time has not passed"
		}
	}
	return ""
}

// breaksBudget reports whether too few of the tasks that the budget covers run without the
// victims. A task that moves does not run for a while, so that it counts as a victim.
func (r *planRules) breaksBudget(budget *cluster.Budget, victims taskSet) bool {
	lost := 0
	for _, t := range r.objects.members(victims) {
		if budget.Covers(t.form.job) {
			lost++
		}
	}
	if lost == 0 {
		return false
	}
	tasks := 0
	for _, f := range r.objects.jobs {
		if budget.Covers(f.job) {
			tasks += len(f.tasks)
		}
	}
	return r.placement.running(budget)-lost < budget.Required(tasks)
}

// cannotEvict reports whether no plan for the request can evict tasks of the form. It is
// cheaper to compute than violation.
func (r *planRules) cannotEvict(req *request, f *form) bool {
	own, others := fork(req.form, f)
	if f.job == req.form.job || !req.kind.has(Reclaim) && !req.kind.has(Preempt) {
		return true
	}
	if len(own) == 0 || len(others) == 0 {
		return !req.kind.has(Preempt) || f.job.Priority >= req.form.job.Priority
	}
	weakest := others[0].tier
	if weakest == cluster.TierGuaranteed {
		weakest = cluster.TierStandard
	}
	if req.kind.has(Preempt) && weakest.Rank() > own[0].tier.Rank() {
		return false
	}
	if !req.kind.has(Reclaim) || weakest.Rank() < own[0].tier.Rank() {
		return true
	}
	for i := range req.amounts {
		if r.objects.divided[i] && req.amounts[i] > 0 && (req.lastResort || r.placement.queues.holdAtLeast(others, i, func(q *queue) int64 { return q.share[i] + 1 })) {
			return false
		}
	}
	return true
}
