package oracle

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// request is a request of room for a minimum of one form of a job.
type request struct {
	kind    Kind
	job     *job
	minimum []*task
	asks    vector // of the minimum
	last    bool   // the rules of the last resort may be used
}

func newRequest(k Kind, j *job, minimum []*task) *request {
	return &request{kind: k, job: j, minimum: minimum, asks: asked(minimum)}
}

// unit is a set of tasks that are evicted together: one surplus task, or all remaining
// tasks of a job.
type unit struct {
	job   *job
	tasks []*task
	whole bool
}

// plan is the victims for a request: the tasks that are evicted, and those that move.
type plan struct {
	request        *request
	evicted, moved uint64
	cost           cost
}

func (p *plan) victims() uint64 { return p.evicted | p.moved }

// violation returns the rule that forbids the plan, or "". All rules are checked against the
// State after the plan: the minimum is placed, evicted tasks hold nothing, and tasks that
// move hold as much as before. given has the plugin that evicts each task; if it is nil, any
// plugin that allows the eviction may.
func (b *board) violation(p *plan, given map[*task]Kind) string {
	for _, t := range b.members(p.victims()) {
		if rule := b.protection(p.request, t); rule != "" {
			return rule
		}
	}
	if rule := b.jointViolation(p); rule != "" {
		return rule
	}
	before := slices.Clone(b.used)
	seats := b.evict(p.evicted)
	defer b.restore(p.evicted, seats)
	e := &ending{p.request, p, given, before}
	for _, j := range b.jobs {
		if own := j.set() & p.evicted; own != 0 {
			if rule := b.evictionViolation(e, j, own); rule != "" {
				return rule
			}
		}
	}
	if e.last && !b.balanced(e) {
		return "reclaim 5: neither is more held within shares, nor are the queues more even"
	}
	return ""
}

// protection returns what keeps the task from being evicted or moved, or "".
func (b *board) protection(r *request, t *task) string {
	switch {
	case t.job.Job == r.job.Job:
		return "it is a task of the job itself"
	case !b.at[t.index].bound:
		return "it does not run"
	case !t.job.Preemptible:
		return "it is not preemptible"
	case slices.Contains(r.job.Displaced, t.job.ID), slices.Contains(b.displaced[r.job.ID], t.job.ID):
		return "it was displaced for the job before"
	case b.placedNow&t.bit() != 0:
		return "it was placed in this session"
	case b.evictedFor[t.job.ID]:
		return "tasks were evicted for its job in this session"
	}
	return ""
}

// jointViolation returns the rule about budgets, minima or moves that all victims together
// break, or "".
func (b *board) jointViolation(p *plan) string {
	for _, budget := range b.budgets {
		leaving := 0
		for _, t := range b.members(p.victims()) {
			if budget.Covers(t.job.Job) {
				leaving++
			}
		}
		if leaving > 0 && b.running(budget)-leaving < b.required(budget) {
			return "its disruption budget would be violated"
		}
	}
	for _, j := range b.jobs {
		own := b.bound(j)
		evicted, moved := own&p.evicted, own&p.moved
		if evicted != 0 && !(evicted == own && moved == 0) && !b.makesMinimum(j, own&^evicted) {
			return "a gang is left below its minimum"
		}
		if moved != 0 && b.moving&j.set() != 0 && !b.makesMinimum(j, own&^evicted&^moved) {
			return "a gang moves that is already moving"
		}
	}
	for _, t := range b.members(p.moved) {
		if !p.request.kind.has(Consolidate) {
			return "nothing may move"
		}
		if b.now-t.Started < minRun(Consolidate, t.job.leaf()) {
			return "its minimum run time has not passed"
		}
	}
	return ""
}

// makesMinimum reports whether the tasks of the set make the job's minimum.
func (b *board) makesMinimum(j *job, set uint64) bool {
	return enough(j, func(t *task) bool { return set&t.bit() != 0 })
}

// bound returns the tasks of the job that run.
func (b *board) bound(j *job) (set uint64) {
	for _, t := range j.tasks {
		if b.at[t.index].bound {
			set |= t.bit()
		}
	}
	return set
}

// ending is a plan after its evicted tasks were removed from the board.
type ending struct {
	*request
	plan   *plan
	given  map[*task]Kind
	before []vector // what each queue held before the plan
}

// evictionViolation returns the rule that keeps the tasks of the job from being evicted, or
// "" if they may be evicted as units, one after the other, in some order.
func (b *board) evictionViolation(e *ending, j *job, tasks uint64) string {
	if tasks == 0 {
		return ""
	}
	rest := tasks | b.bound(j)
	why := "a gang is left below its minimum"
	for _, u := range b.units(j, rest) {
		if u.set()&^tasks != 0 {
			continue
		}
		rule := b.unitViolation(e, &u)
		if rule == "" {
			if rule = b.evictionViolation(e, j, tasks&^u.set()); rule == "" {
				return ""
			}
		}
		why = rule
	}
	return why
}

// units returns the units of the job that may be evicted next. there is the set of its tasks
// that are not evicted yet.
func (b *board) units(j *job, there uint64) (out []unit) {
	needed := false
	for _, t := range b.members(there) {
		if b.makesMinimum(j, there&^t.bit()) {
			out = append(out, unit{job: j, tasks: []*task{t}})
		} else {
			needed = true
		}
	}
	if needed {
		out = append(out, unit{job: j, tasks: b.members(there), whole: true})
	}
	return out
}

func (u *unit) set() (set uint64) {
	for _, t := range u.tasks {
		set |= t.bit()
	}
	return set
}

// unitViolation returns the rule that keeps the unit from being evicted, or "" if a plugin
// may evict it.
func (b *board) unitViolation(e *ending, u *unit) string {
	why := "no plugin may evict it"
	for _, plugin := range []Kind{Reclaim, Preempt} {
		if !e.kind.has(plugin) || e.given != nil && slices.ContainsFunc(u.tasks, func(t *task) bool { return e.given[t] != plugin }) {
			continue
		}
		if b.now-started(u) < minRun(plugin, u.job.leaf()) {
			why = "its minimum run time has not passed"
			continue
		}
		rule := ""
		if plugin == Reclaim {
			rule = b.reclaimViolation(e, u)
		} else {
			rule = b.preemptViolation(e, u)
		}
		if rule == "" {
			return ""
		}
		why = rule
	}
	return why
}

// started returns when the task or, for a whole job, its first task started. Tasks of the
// job that were evicted before count as well.
func started(u *unit) int64 {
	first := u.tasks[0].Started
	if u.whole {
		for _, t := range u.job.tasks {
			if t.Runs() {
				first = min(first, t.Started)
			}
		}
	}
	return first
}

// minRun returns the minimum run time of the queue or of its nearest ancestor with one.
func minRun(plugin Kind, q *queue) int64 {
	for ; q != nil; q = q.parent {
		if plugin == Reclaim && q.minRunBeforeReclaim > 0 {
			return q.minRunBeforeReclaim
		}
		if plugin != Reclaim && q.minRunBeforePreempt > 0 {
			return q.minRunBeforePreempt
		}
	}
	return 0
}

// running counts the tasks that the budget covers and that run.
func (b *board) running(budget *cluster.Budget) int {
	n := 0
	for _, t := range b.tasks {
		if b.at[t.index].bound && budget.Covers(t.job.Job) {
			n++
		}
	}
	return n
}

// required returns how many of the tasks that the budget covers must run.
func (b *board) required(budget *cluster.Budget) int {
	n := 0
	for _, j := range b.jobs {
		if budget.Covers(j.Job) {
			n += len(j.tasks)
		}
	}
	return budget.Required(n)
}

// insideQuota reports whether the job's queue has a quota of a requested resource, and
// whether this queue and all its ancestors stay within their quotas.
func (b *board) insideQuota(j *job, asks vector) bool {
	named := false
	for r := range asks {
		if asks[r] == 0 {
			continue
		}
		named = named || j.leaf().quota(r) >= 0
		for _, q := range j.branch {
			if quota := q.quota(r); quota >= 0 && b.used[q.index][r]+asks[r] > quota {
				return false
			}
		}
	}
	return named
}
