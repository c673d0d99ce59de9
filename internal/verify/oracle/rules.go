package oracle

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// request is a form of a job that requests room for a minimum.
type request struct {
	kind    Kind
	job     *job
	minimum []*task
	asks    vector // of the minimum
	last    bool   // the rules of the last resort let victims be reclaimed as well
}

func newRequest(k Kind, j *job, minimum []*task) *request {
	return &request{kind: k, job: j, minimum: minimum, asks: asked(minimum)}
}

// unit is what is evicted together: a task that its job can spare, or all that is left of it.
type unit struct {
	job   *job
	tasks []*task
	whole bool
}

// plan is a set of victims.
type plan struct {
	request        *request
	evicted, moved uint64
	cost           cost
}

func (p *plan) victims() uint64 { return p.evicted | p.moved }

// objects names the rule that forbids the plan; "" where it is allowed. All rules are
// judged by the State that the plan ends in: the minimum is placed, evicted victims hold
// nothing, and those that move hold what they held. Given says for which plugin each
// evicted task leaves; nil: any that allows it.
func (b *board) objects(p *plan, given map[*task]Kind) string {
	for _, t := range b.members(p.victims()) {
		if rule := b.protects(p.request, t); rule != "" {
			return rule
		}
	}
	if rule := b.tied(p); rule != "" {
		return rule
	}
	before := slices.Clone(b.used)
	seats := b.evict(p.evicted)
	defer b.restore(p.evicted, seats)
	e := &ending{p.request, p, given, before}
	for _, j := range b.jobs {
		if own := j.set() & p.evicted; own != 0 {
			if rule := b.leaves(e, j, own); rule != "" {
				return rule
			}
		}
	}
	if e.last && !b.balanced(e) {
		return "reclaim 5: no more is held within shares, and the queues are no more even"
	}
	return ""
}

// protects says what keeps the task from being a victim of any kind.
func (b *board) protects(r *request, t *task) string {
	switch {
	case t.job.Job == r.job.Job:
		return "it is a task of the job itself"
	case !b.at[t.index].bound:
		return "it does not run"
	case !t.job.Preemptible:
		return "it is not preemptible"
	case slices.Contains(r.job.Displaced, t.job.ID), slices.Contains(b.displaced[r.job.ID], t.job.ID):
		return "it was displaced for the job before"
	case b.fresh&t.bit() != 0:
		return "it was placed in this session"
	case b.served[t.job.ID]:
		return "others were evicted for it in this session"
	}
	return ""
}

// tied holds budgets, minima and moves against the victims together.
func (b *board) tied(p *plan) string {
	for _, budget := range b.budgets {
		leaving := 0
		for _, t := range b.members(p.victims()) {
			if budget.Covers(t.job.Job) {
				leaving++
			}
		}
		if leaving > 0 && b.running(budget)-leaving < b.required(budget) {
			return "its disruption budget would not hold"
		}
	}
	for _, j := range b.jobs {
		own := b.bound(j)
		evicted, moved := own&p.evicted, own&p.moved
		if evicted != 0 && !(evicted == own && moved == 0) && !b.makes(j, own&^evicted) {
			return "a gang is left below its minimum"
		}
		if moved != 0 && b.flying&j.set() != 0 && !b.makes(j, own&^evicted&^moved) {
			return "a gang moves that is on its way already"
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

// makes reports whether the tasks of the set make the job's minimum.
func (b *board) makes(j *job, set uint64) bool {
	return enough(j, func(t *task) bool { return set&t.bit() != 0 })
}

// bound are the tasks of the job that run.
func (b *board) bound(j *job) (set uint64) {
	for _, t := range j.tasks {
		if b.at[t.index].bound {
			set |= t.bit()
		}
	}
	return set
}

// ending is a plan whose evicted victims are gone from the board.
type ending struct {
	*request
	plan   *plan
	given  map[*task]Kind
	before []vector // what queues held before the plan
}

// leaves names the rule that keeps the tasks from being evicted; "" where they may be,
// as units one after the other in some order.
func (b *board) leaves(e *ending, j *job, tasks uint64) string {
	if tasks == 0 {
		return ""
	}
	rest := tasks | b.bound(j)
	why := "a gang is left below its minimum"
	for _, u := range b.units(j, rest) {
		if u.set()&^tasks != 0 {
			continue
		}
		rule := b.spares(e, &u)
		if rule == "" {
			if rule = b.leaves(e, j, tasks&^u.set()); rule == "" {
				return ""
			}
		}
		why = rule
	}
	return why
}

// units are what may be evicted next of the job, of which so much is there.
func (b *board) units(j *job, there uint64) (out []unit) {
	needed := false
	for _, t := range b.members(there) {
		if b.makes(j, there&^t.bit()) {
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

// spares names the rule that keeps the unit from being evicted; "" where a plugin may evict it.
func (b *board) spares(e *ending, u *unit) string {
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
			rule = b.sparesReclaim(e, u)
		} else {
			rule = b.sparesPreempt(e, u)
		}
		if rule == "" {
			return ""
		}
		why = rule
	}
	return why
}

// started is when the task was, or the job's first: tasks that were evicted before the
// rest still tell when the job began.
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

// minRun is that of the queue, or of the nearest above that has one.
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

// required is how many of the tasks that the budget covers must run.
func (b *board) required(budget *cluster.Budget) int {
	n := 0
	for _, j := range b.jobs {
		if budget.Covers(j.Job) {
			n += len(j.tasks)
		}
	}
	return budget.Required(n)
}

// insideQuota reports whether the job's queue has a quota of something that is asked
// for, and it and all queues above it stay within theirs.
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
