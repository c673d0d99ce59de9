package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Bounds of a search for room, in steps.
const (
	maxLooks  = 256  // nodes looked at closely in vain
	maxTries  = 400  // plans put to Place
	maxUnsure = 12   // tasks that might go, up to which all plans are compared
	maxSmall  = 64   // nodes, up to which all plans are compared
	maxInLine = 256  // tasks that might go, up to which they are tried one after the other
	maxMoved  = 64   // tasks of a job that is moved for another
	maxThin   = 2048 // victims times tasks, up to which each victim is asked whether it could stay
	maxScopes = 32   // groups or domains that are compared
)

// MakeRoom has others go so that the job's minimum is placed: as few as it can,
// in the order that rivals have, and only those whom the hooks of the purpose
// let go. Place judges the plan; one that it does not accept is taken back. With
// the purpose Move, those who go are promised room elsewhere, all of them.
//
// It returns what Place says, or the refusal where no plan was found.
func (s *Session) MakeRoom(stmt *Statement, job *cluster.Job, refusal *Refusal, p Purpose, why Reason) *Refusal {
	if refusal.Permanent {
		return refusal // nobody's going would help
	}
	if s.State.Preemptible() == 0 {
		refusal.spare(p, false, nil)
		return refusal
	}
	for from, forms := range choices(job) {
		if !refusal.evictable(from, p) {
			continue
		}
		var best *room
		for i := range forms {
			if best = s.cheaperRoom(best, &room{Session: s, stmt: stmt, job: job, alternative: from + i, purpose: p, why: why}, refusal); s.err != nil {
				return refusal
			}
		}
		if best != nil {
			return best.carryOut()
		}
	}
	return refusal
}

// cheaperRoom looks for room in the form that r is for, and returns what costs least.
func (s *Session) cheaperRoom(best, form *room, refusal *Refusal) *room {
	for k, lacks := range s.minima(form.alt()) {
		may := s.victims(form.purpose, form.job, lacks)
		if may == nil {
			refusal.spare(form.purpose, true, nil)
			continue
		}
		r := *form
		r.lacks, r.may, r.bounded, r.exactly = lacks, may, s.bounded(refusal), k > 0
		r.might = s.classes(form.purpose, form.job, lacks)
		if r.find(); s.err != nil {
			return nil
		}
		if r.plan == nil {
			refusal.spare(r.purpose, false, r.spared)
		} else if best == nil || r.cost.compare(&best.cost) < 0 {
			best = &r
		}
	}
	return best
}

// minima are the sets of tasks that room is looked for: those that the minimum
// needs in the order they are placed and, where others would do too, the smallest.
func (s *Session) minima(alt *cluster.Alternative) [][]*cluster.Task {
	first := s.lacking(alt, s.CompareTasks)
	if len(first) == 0 {
		return nil
	}
	out := append([][]*cluster.Task{first}, s.otherSubgroups(alt)...)
	smallest := s.lacking(alt, func(a, b *cluster.Task) int {
		return cmp.Or(cmp.Compare(s.devicesOf(a.Shape).Value, s.devicesOf(b.Shape).Value), cmp.Compare(a.Shape.Resources.Of(cluster.CPU), b.Shape.Resources.Of(cluster.CPU)))
	})
	for _, t := range smallest {
		if !slices.ContainsFunc(first, func(o *cluster.Task) bool { return o.Shape == t.Shape }) {
			return append(out, smallest)
		}
	}
	return out
}

// evictable reports whether somebody's going might have helped the alternative.
// What a queue may not have it may not have wherever others move.
func (r *Refusal) evictable(alternative int, p Purpose) bool {
	i := slices.IndexFunc(r.Attempts, func(a Attempt) bool { return a.from <= alternative && alternative < a.to })
	if i < 0 {
		return false
	}
	a := &r.Attempts[i]
	if p == Move && a.Before != nil {
		return false
	}
	return !a.Never && slices.ContainsFunc(a.tallies(), func(c Tally) bool { return c.Cure&Evict != 0 })
}

// bounded reports whether the job was turned down for more than what nodes have:
// before any node was looked at, or by a filter that sees more than the node.
func (s *Session) bounded(r *Refusal) bool {
	return slices.ContainsFunc(r.Attempts, func(a Attempt) bool {
		return a.Before != nil || slices.ContainsFunc(a.Counts, func(c Tally) bool {
			return slices.ContainsFunc(s.hooks.predicates, func(h hook[PredicateFn]) bool { return h.plugin == c.Plugin })
		})
	})
}

// Lacking are the pending tasks that the minimum needs, in the order they are placed.
func (s *Session) Lacking(alt *cluster.Alternative) []*cluster.Task {
	return s.lacking(alt, s.CompareTasks)
}

// lacking are those, the first in the order.
func (s *Session) lacking(alt *cluster.Alternative, order func(a, b *cluster.Task) int) []*cluster.Task {
	return s.lackingOf(alt, s.wanted(alt, nil), order)
}

// lackingOf are those where the minimum is made of the subgroups that are wanted.
func (s *Session) lackingOf(alt *cluster.Alternative, wanted []bool, order func(a, b *cluster.Task) int) []*cluster.Task {
	var pending []*cluster.Task
	short, parts := alt.Min, make([]int, len(alt.Subgroups))
	for i := range parts {
		if wanted == nil || wanted[i] {
			parts[i] = alt.Subgroups[i].Min
		}
	}
	for _, t := range alt.Tasks {
		switch {
		case t.Subgroup > 0 && wanted != nil && !wanted[t.Subgroup-1]:
			if t.Placed() {
				short--
			}
		case t.Status == cluster.Pending:
			pending = append(pending, t)
		case t.Placed() || t.Status == cluster.Succeeded:
			short--
			if t.Subgroup > 0 {
				parts[t.Subgroup-1]--
			}
		}
	}
	slices.SortStableFunc(pending, order)
	needed := make([]bool, len(pending))
	for i, t := range pending {
		if t.Subgroup > 0 && parts[t.Subgroup-1] > 0 {
			parts[t.Subgroup-1]--
			short--
			needed[i] = true
		}
	}
	var out []*cluster.Task
	for i, t := range pending {
		if !needed[i] && short > 0 {
			short--
			needed[i] = true
		}
		if needed[i] {
			out = append(out, t)
		}
	}
	return out
}

// room is the search for one alternative of one job.
type room struct {
	*Session
	stmt        *Statement
	job         *cluster.Job
	alternative int
	lacks       []*cluster.Task
	purpose     Purpose
	why         Reason
	may         func(*Victim) *Spared
	might       func(cluster.Class) bool // nil: any class may have victims

	scratch []*cluster.Task
	prices  []price
	bounded bool // somebody's limit is in the way, not a node
	exactly bool // these tasks are to be placed, and not others that would do
	hosts   map[*cluster.Node]bool

	plan []*Victim // nil where there is none
	cost cost

	looks, tries int
	spared       []Protection
	counted      map[protected]bool
	weighed      []Option
}

func (r *room) alt() *cluster.Alternative { return &r.job.Alternatives[r.alternative] }

// find looks for a plan, and leaves the statement as it is.
func (r *room) find() {
	quiet := r.quiet
	r.quiet = true // what fails here needs no explanation
	defer func() { r.quiet = quiet }()
	plan := r.greedy()
	if plan != nil && !r.works(plan) {
		plan = nil
	}
	if all := r.few(); all != nil {
		if better := r.cheapest(all, plan); better != nil {
			plan = better
		}
	} else if plan == nil && r.unsure() {
		plan = r.inLine()
	}
	if plan == nil || r.err != nil {
		return
	}
	r.plan = r.thin(plan)
	r.cost = costOf(r.State, r.plan, r.purpose)
}

// carryOut has those go who are in the plan, and returns what Place says.
func (r *room) carryOut() *Refusal {
	quiet := r.quiet
	r.quiet = true
	defer func() { r.quiet = quiet }()
	r.stmt.weighing = r.weighing(r.plan)
	left, _ := r.judge(r.plan)
	r.stmt.weighing = nil
	return left
}

// thin lets stay whom the plan does not need. Where others move, two may have to
// stay together, since they need room themselves.
func (r *room) thin(plan []*Victim) []*Victim {
	if len(plan) < 2 || len(plan)*len(r.lacks) > maxThin {
		return plan
	}
	if r.purpose != Move || len(plan) > maxUnsure {
		return r.keep(plan, func(rest []*Victim) bool { return r.tries < maxTries && r.works(rest) })
	}
	var tasks []rival
	for _, v := range plan {
		for _, t := range v.Tasks {
			tasks = append(tasks, r.rival(t))
		}
	}
	if len(tasks) <= maxUnsure {
		if better := r.cheapest(tasks, plan); better != nil {
			return better
		}
		return plan
	}
	var parts [][]*Victim
	for mask := 1; mask < 1<<len(plan)-1; mask++ {
		var part []*Victim
		for i, v := range plan {
			if mask>>i&1 == 1 {
				part = append(part, v)
			}
		}
		parts = append(parts, part)
	}
	slices.SortStableFunc(parts, func(a, b []*Victim) int {
		x, y := costOf(r.State, a, r.purpose), costOf(r.State, b, r.purpose)
		return x.compare(&y)
	})
	for _, part := range parts {
		if r.tries >= maxTries || r.err != nil {
			break
		}
		if r.works(part) {
			return part
		}
	}
	return plan
}

// unsure reports whether a plan may exist that the search node by node has not seen.
func (r *room) unsure() bool {
	alt := r.alt()
	return r.bounded || len(alt.Subgroups) > 0 || !alt.Topology.None() ||
		alt.Whole != nil && r.job.Set.Name != "" || // the group must have room for the others of its set too
		slices.ContainsFunc(r.lacks, func(t *cluster.Task) bool { return t.Shape != r.lacks[0].Shape })
}

// works tries the plan and takes it back.
func (r *room) works(plan []*Victim) bool {
	mark := r.stmt.Checkpoint()
	_, ok := r.judge(plan)
	r.stmt.Rollback(mark)
	return ok
}

// judge carries the plan out: the victims go, Place puts the job where they were,
// and what moves lands. It leaves the statement as it is; false means that the
// plan does not work.
func (r *room) judge(plan []*Victim) (*Refusal, bool) {
	r.tries++
	for _, v := range plan {
		if !r.evict(v) {
			return &Refusal{}, false
		}
	}
	mark := r.stmt.Checkpoint()
	if r.exactly && !r.seat(nil) {
		return &Refusal{}, false
	}
	left := r.Place(r.stmt, r.job)
	fits := (left == nil || left.Surplus) && r.err == nil
	if r.purpose == Move && (!fits || !r.land(plan)) {
		r.stmt.Rollback(mark)
		return r.together(plan)
	}
	return left, fits
}

// evict has the victim go if it still may: those before it have changed the books.
func (r *room) evict(v *Victim) bool {
	if !v.stillOne() || slices.ContainsFunc(v.Tasks, func(t *cluster.Task) bool { return t.Spared > r.Now }) {
		return false
	}
	if spared := r.may(v); spared != nil {
		r.note(spared, v)
		return false
	}
	for _, t := range v.Tasks {
		if err := r.stmt.Evict(t, r.job.ID, r.why); err != nil {
			r.fail("engine", "making room: %v", err)
			return false
		}
	}
	return true
}

// protected is a job that was spared, and why.
type protected struct {
	Spared
	job *cluster.Job
}

// note counts who was spared, by whom and why.
func (r *room) note(s *Spared, v *Victim) {
	key := protected{*s, v.Job}
	if r.counted[key] {
		return
	}
	if r.counted == nil {
		r.counted = map[protected]bool{}
	}
	r.counted[key] = true
	r.spared = protect(r.spared, s, v.Job.ID)
}
