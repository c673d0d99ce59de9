package oracle

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// unit is what goes together: a task that its job can spare, or all that is left of the job.
type unit struct {
	job   *job
	tasks []*task
}

func (u *unit) set() (set uint64) {
	for _, t := range u.tasks {
		set |= t.bit()
	}
	return set
}

// request is a job that wants room, what it asks for and by which right.
type request struct {
	kind Kind
	job  *job
	asks vector // by the minimum that is tried
}

// units are all that may go next for the request, whatever the rules of its kind say.
func (b *board) units(r *request) []unit {
	var out []unit
	for _, j := range b.jobs {
		whole := unit{job: j}
		needed := false
		for _, t := range j.tasks {
			if !b.at[t.index].bound {
				continue
			}
			whole.tasks = append(whole.tasks, t)
			if b.stands(j, t.bit()) {
				out = append(out, unit{j, []*task{t}})
			} else {
				needed = true
			}
		}
		if needed {
			out = append(out, whole)
		}
	}
	return out
}

// spares says which rule keeps the unit from going for the request, with those
// before it gone from the board; "" where none does.
func (b *board) spares(r *request, u *unit) string {
	switch {
	case u.job == r.job:
		return "it is the job itself"
	case !u.job.Preemptible:
		return "it is not preemptible"
	}
	for _, t := range u.tasks {
		if b.at[t.index].fresh {
			return "it was bound in this session"
		}
	}
	for _, id := range r.job.Displaced {
		if id == u.job.ID {
			return "it was displaced for the job before"
		}
	}
	if b.now-b.started(u) < minRun(r.kind, u.job.leaf()) {
		return "its minimum run time has not passed"
	}
	for _, budget := range b.budgets {
		if budget.Covers(u.job.Job) && b.running(budget)-len(u.tasks) < b.required(budget) {
			return "its disruption budget would not hold"
		}
	}
	switch r.kind {
	case Reclaim:
		return b.sparesReclaim(r, u)
	case Preempt:
		return b.sparesPreempt(r, u)
	}
	return ""
}

// started is when the task was, or the job's first: tasks that went before the
// rest still tell when the job began.
func (b *board) started(u *unit) int64 {
	first := u.tasks[0].Started
	if !b.stands(u.job, u.set()) {
		for _, t := range u.job.tasks {
			if t.Runs() {
				first = min(first, t.Started)
			}
		}
	}
	return first
}

// minRun is that of the queue, or of the nearest above that has one.
func minRun(k Kind, q *queue) int64 {
	for ; q != nil; q = q.parent {
		if k == Reclaim && q.minRunBeforeReclaim > 0 {
			return q.minRunBeforeReclaim
		}
		if k != Reclaim && q.minRunBeforePreempt > 0 {
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
	for _, t := range b.tasks {
		if budget.Covers(t.job.Job) {
			n++
		}
	}
	return budget.Required(n)
}

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
// for what it deserves.
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

// tierOfVictim is the tier that the queue counts with for the unit, and whether
// it may lose it at all: what a Guaranteed queue deserves it keeps.
func (b *board) tierOfVictim(q *queue, held vector) (cluster.Tier, bool) {
	if q.tier != cluster.TierGuaranteed {
		return q.tier, true
	}
	quotas := false
	for r := range held {
		quota := q.quota(r)
		quotas = quotas || quota >= 0 && held[r] > 0
		if quota >= 0 && held[r] > 0 && b.used[q.index][r]-held[r] < quota {
			return q.tier, false
		}
	}
	if quotas {
		return cluster.TierStandard, true
	}
	return q.tier, true
}

func (b *board) held(u *unit) vector {
	var sum vector
	for _, t := range u.tasks {
		sum = sum.plus(b.holds(t), +1)
	}
	return sum
}

func (b *board) sparesReclaim(r *request, u *unit) string {
	own, others := fork(r.job, u.job)
	if len(own) == 0 || len(others) == 0 {
		return "reclaim: it is in the same queue"
	}
	held := b.held(u)
	tier, may := b.tierOfVictim(others[0], held)
	if !may {
		return "reclaim: its Guaranteed queue would hold less than its quota"
	}
	if tier.Rank() < b.tierOf(own[0], r.asks).Rank() {
		return "reclaim 1: its queue is of a stronger tier"
	}
	for _, q := range own {
		for i := range r.asks {
			if b.divided[i] && r.asks[i] > 0 && b.used[q.index][i]+r.asks[i] > q.share[i] {
				return "reclaim 2: the job's queue would be above its share"
			}
		}
	}
	for i := range r.asks {
		if b.divided[i] && r.asks[i] > 0 && held[i] > 0 && (b.keepsShare(others, i, held) || b.deserves(own, i, r.asks) && b.isAbove(others, i)) {
			return ""
		}
	}
	return "reclaim 3: its queue would be below its share"
}

// keepsShare reports whether every queue has at least its share left without what is held.
func (b *board) keepsShare(queues []*queue, r int, held vector) bool {
	for _, q := range queues {
		if b.used[q.index][r]-held[r] < q.share[r] {
			return false
		}
	}
	return true
}

// deserves reports whether every queue stays within its quota with what is asked for.
func (b *board) deserves(queues []*queue, r int, asks vector) bool {
	for _, q := range queues {
		if quota := q.quota(r); quota < 0 || b.used[q.index][r]+asks[r] > quota {
			return false
		}
	}
	return true
}

// isAbove reports whether every queue holds more than its share and its quota.
func (b *board) isAbove(queues []*queue, r int) bool {
	for _, q := range queues {
		if used := b.used[q.index][r]; used <= q.share[r] || used <= q.quota(r) {
			return false
		}
	}
	return true
}

func (b *board) sparesPreempt(r *request, u *unit) string {
	own, others := fork(r.job, u.job)
	if len(own) == 0 || len(others) == 0 {
		if u.job.Priority < r.job.Priority {
			return ""
		}
		return "preempt: it matters as much in the same queue"
	}
	tier, may := b.tierOfVictim(others[0], b.held(u))
	if !may {
		return "preempt: its Guaranteed queue would hold less than its quota"
	}
	if tier.Rank() > b.tierOf(own[0], r.asks).Rank() {
		return ""
	}
	return "preempt: its queue is of no weaker tier"
}

// cost is what a plan takes, by tier and in all; less is better, the first that differs decides.
type cost [4]int

// costOf is what the unit adds to a plan: its tasks under the tier of the queue
// they are in. Who moves lands again, so that tasks alone count.
func costOf(r *request, u *unit) cost {
	c := cost{3: len(u.tasks)}
	if r.kind.purpose() != engine.Move {
		c[u.job.leaf().tier.Rank()] = len(u.tasks)
	}
	return c
}

func (c cost) plus(o cost) cost {
	for i := range c {
		c[i] += o[i]
	}
	return c
}

func (c cost) less(o cost) bool {
	for i := range c {
		if c[i] != o[i] {
			return c[i] < o[i]
		}
	}
	return false
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
