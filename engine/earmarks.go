package engine

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// This file decides which jobs may take room that is earmarked for another job, and lets plugins
// earmark room. docs/designs/0009-earmarks.md explains the rules.

// keeper keeps tasks out of room that is earmarked for another job. Its rejections are those of a
// task-form filter, so that everything that places tasks respects them: see finder.taskHooks. It
// depends on nothing but the job, the shape of the task, the node, and the owner of the earmark.
type keeper struct {
	view  cluster.View
	now   int64
	hook  hook[TaskFilter] // the filter; its plugin is "" if no plugin keeps earmarks
	why   Reason
	turns turnOrder
}

// turnOrder compares turns of jobs of one queue, as order does.
type turnOrder interface{ compareTurns(a, b turn) int }

// Keep makes the engine keep tasks out of room that is earmarked for another job, and reject nodes
// for it with the reason, which the plugin must document. It must be called in OnSessionOpen, and in Reopen. If no
// plugin calls it, a session withdraws all earmarks.
func (e Earmarks) Keep(why Reason) {
	s := e.session
	p := calledNow(s.Hooks)
	if p == nil {
		misused(s.Hooks, "Earmarks.Keep", "it was called after OnSessionOpen; call it in OnSessionOpen, and in Reopen if the plugin has one")
		return
	}
	k := &s.finder.keeper
	*k = keeper{view: s.View, now: s.Now, why: why, turns: &s.order, hook: hook[TaskFilter]{plugin: p.name}}
}

// active reports whether there is room that tasks are kept out of.
func (k *keeper) active() bool {
	if k.hook.plugin == "" || !cluster.EarmarksOf(k.view).Any() {
		return false
	}
	if k.hook.fn == nil { // only now, so that sessions without earmarks do not allocate it
		k.hook.fn = k.reject
	}
	return true
}

// reject is the one place that decides whether a task may be placed beside an earmark. It may if
// nothing is earmarked of the node for another job, if it leaves the earmarked room, or if its job
// may take that room. A task that moves is placed only if it leaves the room.
func (k *keeper) reject(t *cluster.Task, job *cluster.Job, n *cluster.Node) *Rejection {
	of := cluster.EarmarksOf(k.view).On(n)
	if of == nil {
		return nil
	}
	owner := k.view.Job(of.Job)
	if owner == nil || !k.inForce(owner, n) || of.Allows(t.Shape, n) || t.ShadowOf() == nil && k.mayUse(job, owner) {
		return nil
	}
	return &Rejection{Reason: k.why, Cure: Wait, Subject: owner.ID}
}

// rejects reports whether the keeper rejects the node for the task.
func (k *keeper) rejects(t *cluster.Task, n *cluster.Node) bool {
	return k.active() && k.reject(t, t.Job, n) != nil
}

// inForce reports whether the earmark of the owner on the node is in force: not if the owner was
// placed there in this session. If it was placed elsewhere, the room is kept until the end of
// the session, because the plugin may pass it on to another job.
func (k *keeper) inForce(owner *cluster.Job, n *cluster.Node) bool {
	return !owner.HasMinimum() || !slices.ContainsFunc(n.Tasks, func(t *cluster.Task) bool { return t.Job == owner })
}

// farSighted reports whether one of the filters of a task may look at more than the node and the
// job, as all task-form filters of plugins may, other than the keeper.
func (k *keeper) farSighted(filters []*hook[TaskFilter]) bool {
	return slices.ContainsFunc(filters, func(h *hook[TaskFilter]) bool { return h != &k.hook })
}

// mayUse reports whether the job may take room that is earmarked for the owner. It may if it is
// the owner, if it comes before the owner in the order of their queue, if its queue has a
// stronger tier, or if it has a run time with which it ends before the owner can start.
func (k *keeper) mayUse(job, owner *cluster.Job) bool {
	switch e := owner.Earmarked; {
	case job == owner:
		return true
	case job.Queue == owner.Queue && k.turns.compareTurns(turnOf(job), turn{owner, -1}) < 0: // also if the owner was placed in this session
		return true
	case e != nil && e.Start > 0 && job.RunFor > 0 && job.Chosen < 0 && roundedRunTime(job.RunFor) <= e.Start-k.now:
		return true
	}
	mine, its := k.view.Queue(job.Queue), k.view.Queue(owner.Queue)
	return mine != nil && its != nil && mine.Tier.Rank() < its.Tier.Rank()
}

// roundedRunTime rounds the run time up to one of eight steps between each power of two and the
// next. Jobs with equal results share a bucket of parked jobs.
func roundedRunTime(d int64) int64 {
	drop := max(0, bits.Len64(uint64(max(0, d)))-4)
	step := int64(1) << drop
	return (d + step - 1) &^ (step - 1)
}

// usable returns the IDs of the owners of the earmarks that the job may use, which
// distinguishes jobs that are alike in all else.
func (k *keeper) usable(job *cluster.Job) string {
	if !k.active() {
		return ""
	}
	var out []string
	for _, owner := range cluster.EarmarksOf(k.view).Jobs() {
		if k.mayUse(job, owner) {
			out = append(out, owner.ID)
		}
	}
	return strings.Join(out, " ")
}

// Earmarks gives plugins what they need to decide which jobs get earmarks.
type Earmarks struct{ session *Session }

// withdrawEnded withdraws the earmarks of jobs that are not pending any more or have their
// minimum, and those of which a node is gone or cannot have the room any more. If no plugin keeps
// earmarks, it withdraws all.
func (e Earmarks) withdrawEnded() {
	s := e.session
	stmt := (*Statement)(nil)
	for _, j := range cluster.EarmarksOf(s.View).Jobs() {
		if s.finder.keeper.hook.plugin != "" && s.View.IsPending(j) && !j.HasMinimum() && e.attainable(j.Earmarked) {
			continue
		}
		if stmt == nil {
			stmt = s.clerk.begin()
		}
		stmt.Earmark(j, nil)
	}
	if stmt != nil {
		stmt.Commit()
	}
}

// attainable reports whether all rooms of the earmark are Attainable.
func (e Earmarks) attainable(of *cluster.Earmarked) bool {
	return !slices.ContainsFunc(of.Rooms, func(r cluster.EarmarkedRoom) bool { return !e.Attainable(r) })
}

// Attainable reports whether the node is there, takes tasks, and would have the room if no task
// were on it. A session withdraws earmarks with other rooms.
func (e Earmarks) Attainable(r cluster.EarmarkedRoom) bool {
	n := e.session.View.Node(r.Node)
	return n != nil && !n.Unschedulable && r.Within(n)
}

// Earmark earmarks room for a job that waits, instead of what was earmarked for it before; nil
// withdraws the earmark. Other jobs do not take the room, unless they may (see
// docs/designs/0009-earmarks.md). It returns an error and changes nothing if a node is not known, or if a
// part of it is earmarked for another job.
func (st *Statement) Earmark(j *cluster.Job, e *cluster.Earmarked) error {
	if st.session.closed {
		return errClosed
	}
	at, before := st.position(), j.Earmarked
	if err := st.tx.Earmark(j, e); err != nil {
		return err
	}
	st.logOperation(operation{kind: earmarked, at: at, job: j, sameRoom: sameRoom(before, e)})
	return nil
}

// sameRoom reports whether the earmarks are of the same room for the same time.
func sameRoom(a, b *cluster.Earmarked) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Start == b.Start && slices.EqualFunc(a.Rooms, b.Rooms, func(x, y cluster.EarmarkedRoom) bool {
		return x.Node == y.Node && x.Devices == y.Devices && slices.Equal(x.Resources, y.Resources)
	})
}

// sameEarmark reports whether the earmarks are of the same room for the same time, and whether the job has had
// an earmark for as long. When they were reviewed does not count: no comparison of jobs may depend on it.
func sameEarmark(a, b *cluster.Earmarked) bool {
	return sameRoom(a, b) && (a == nil || a.Since == b.Since)
}

// starvesAgain is how long after Starving returned jobs it returns them again, in nanoseconds.
const starvesAgain = 60 * firstBackOff

// Starving is a job that was refused, and has waited for long.
type Starving struct {
	Job     *cluster.Job
	Refusal *Refusal
}

// Starving returns jobs that were refused, lack their minimum, have no earmark and were created at
// least the given time ago, sorted by queue and then in the order of turns. Of jobs that are alike
// it may return only the first. A job without a creation time is never returned.
//
// A patient session examines all parked jobs only if one of them has become that old, if an earmark
// was withdrawn, or a minute after the last call that returned jobs; otherwise it returns none.
// It requests a session for the time at which the next job becomes that old. Any other session
// examines the jobs that it refused.
func (e Earmarks) Starving(after int64) (out []Starving) {
	s := e.session
	if b := s.engine.backlog; s.options.Patient && b != nil {
		out = starvingParked(b, s.refused, after)
		s.WakeAt(b.starvesAt)
	} else {
		out, _ = starving(s.View, s.refused, s.Now, after)
	}
	slices.SortStableFunc(out, func(x, y Starving) int {
		return cmp.Or(strings.Compare(x.Job.Queue, y.Job.Queue), s.order.compareTurns(turnOf(x.Job), turnOf(y.Job)))
	})
	return out
}

// ExamineAt makes a patient session at the given time or later examine all jobs again (see Starving), and
// requests a session for that time. It counts after a call of Starving that returned jobs.
func (e Earmarks) ExamineAt(at int64) {
	s := e.session
	if b := s.engine.backlog; s.options.Patient && b != nil {
		if b.starvesAt == 0 || at < b.starvesAt {
			b.starvesAt = at
		}
		s.WakeAt(at)
	}
}

// Refusal returns why the job was refused last, nil if the engine does not know.
func (e Earmarks) Refusal(j *cluster.Job) *Refusal {
	s := e.session
	for i := len(s.refused) - 1; i >= 0; i-- {
		if s.refused[i].Job == j {
			return s.refused[i].Refusal
		}
	}
	if b := s.engine.backlog; s.options.Patient && b != nil && j.Slot() < b.waiters.Len() {
		if w := b.waiters.At(j.Slot()); w != nil && w.bucket != nil {
			return w.bucket.refusal
		}
	}
	return nil
}

// WhenEmpty returns a function that counts how many tasks of the shape of the given one a node
// would hold if no task of another job were on it.
func (e Earmarks) WhenEmpty(t *cluster.Task) func(*cluster.Node) int {
	return e.session.explainer.capacityWhenEmpty(t, nil)
}

// starving returns those of the jobs that have waited for the time, and when the first of the
// others has; 0: there are no others.
func starving(v cluster.View, jobs []Starving, now, after int64) (out []Starving, next int64) {
	for _, r := range jobs {
		switch j := r.Job; {
		case j.Created <= 0 || j.Earmarked != nil || j.HasMinimum() || !v.IsPending(j):
		case j.Created+after <= now:
			out = append(out, r)
		case next == 0 || j.Created+after < next:
			next = j.Created + after
		}
	}
	return out, next
}

// starvingParked is starving for the parked jobs. refused has the jobs that were refused for the first
// time in this session.
func starvingParked(b *backlog, refused []Starving, after int64) []Starving {
	earmarks := len(cluster.EarmarksOf(b.view).Jobs())
	due := earmarks < b.earmarks || b.starvesAt > 0 && b.now >= b.starvesAt || b.starvesAgain > 0 && b.now >= b.starvesAgain
	if old, next := starving(b.view, refused, b.now, after); !due && len(old) == 0 {
		if b.starvesAt == 0 || next > 0 && next < b.starvesAt {
			b.starvesAt = next
		}
		b.earmarks = earmarks
		return nil
	}
	var first []Starving // of each bucket
	b.eachBucket(func(k *bucket) {
		if !k.permanent {
			first = append(first, Starving{k.jobs[0].job, k.refusal})
		}
	})
	out, next := starving(b.view, first, b.now, after)
	if b.starvesAt, b.earmarks, b.starvesAgain = next, earmarks, 0; len(out) > 0 {
		b.starvesAgain = b.now + starvesAgain
	}
	return out
}
