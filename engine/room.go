package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Bounds of a search for room, in steps.
const (
	maxLooks  = 256 // nodes looked at closely in vain
	maxTries  = 400 // plans put to Place
	maxUnsure = 12  // tasks that might go, up to which all plans are compared
	maxSmall  = 64  // nodes, up to which all plans are compared
	maxInLine = 256 // tasks that might go, up to which they are tried one after the other
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
	for i := range job.Alternatives {
		if job.Chosen >= 0 && i != job.Chosen || !refusal.evictable(i) {
			continue
		}
		lacks := s.lacking(&job.Alternatives[i])
		if len(lacks) == 0 {
			continue
		}
		may := s.victims(p, job, lacks)
		if may == nil {
			continue
		}
		r := &room{Session: s, stmt: stmt, job: job, alternative: i, lacks: lacks, purpose: p, why: why, may: may, bounded: s.bounded(refusal)}
		if left := r.make(); left == nil || left.Surplus {
			return left
		}
		refusal.spare(p, r.spared)
		if s.err != nil {
			break
		}
	}
	return refusal
}

// evictable reports whether somebody's going might have helped the alternative.
func (r *Refusal) evictable(alternative int) bool {
	if len(r.Attempts) == 1 {
		alternative = 0
	}
	if alternative >= len(r.Attempts) {
		return false
	}
	a := &r.Attempts[alternative]
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

// lacking are the pending tasks that the minimum needs, in the order they are placed.
func (s *Session) lacking(alt *cluster.Alternative) []*cluster.Task {
	var pending []*cluster.Task
	short, parts := alt.Min, make([]int, len(alt.Subgroups))
	for i := range parts {
		parts[i] = alt.Subgroups[i].Min
	}
	for _, t := range alt.Tasks {
		switch {
		case t.Status == cluster.Pending:
			pending = append(pending, t)
		case t.Placed():
			short--
			if t.Subgroup > 0 {
				parts[t.Subgroup-1]--
			}
		}
	}
	slices.SortStableFunc(pending, s.CompareTasks)
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

	bounded bool // somebody's limit is in the way, not a node
	hosts   map[*cluster.Node]bool

	looks, tries int
	spared       []Protection
	weighed      []Option
}

func (r *room) alt() *cluster.Alternative { return &r.job.Alternatives[r.alternative] }

// make finds a plan and carries it out in the statement.
func (r *room) make() *Refusal {
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
	} else if plan == nil {
		plan = r.inLine()
	}
	if plan == nil || r.err != nil {
		return &Refusal{}
	}
	r.stmt.weighing = &Weighing{Purpose: r.purpose, Looks: r.looks, Tries: r.tries, Options: r.weighed, Spared: r.spared}
	left, _ := r.judge(plan)
	r.stmt.weighing = nil
	return left
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
	left := r.Place(r.stmt, r.job)
	if left != nil && !left.Surplus || r.err != nil {
		return &Refusal{}, false
	}
	if r.purpose == Move && !r.land(plan) {
		return &Refusal{}, false
	}
	return left, true
}

// evict has the victim go if it still may: those before it have changed the books.
func (r *room) evict(v *Victim) bool {
	if !v.stillOne() {
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

// land promises everybody in the plan room elsewhere, those who need most first.
func (r *room) land(plan []*Victim) bool {
	leaving := map[*cluster.Job][]*cluster.Task{}
	var jobs []*cluster.Job
	for _, v := range plan {
		if leaving[v.Job] == nil {
			jobs = append(jobs, v.Job)
		}
		leaving[v.Job] = append(leaving[v.Job], v.Tasks...)
	}
	slices.SortStableFunc(jobs, func(a, b *cluster.Job) int { return size(leaving[b]) - size(leaving[a]) })
	for _, j := range jobs {
		shadow := j.Shadow(leaving[j])
		if !shadow.Alternatives[0].Enough(func(*cluster.Task) bool { return true }) {
			return false // it runs below its minimum, and would move for nothing
		}
		if left := r.Place(r.stmt, shadow); left != nil || r.err != nil {
			return false
		}
		r.stmt.land(shadow)
	}
	return true
}

// size is how much room tasks take: of devices, then of cores.
func size(tasks []*cluster.Task) int {
	milli := int64(0)
	for _, t := range tasks {
		for _, c := range t.Claims {
			milli += 64 * int64(c.Milli)
		}
		milli += t.Shape.Resources.Of(cluster.CPU)
	}
	return int(milli)
}

// note counts who was spared, by whom and why.
func (r *room) note(s *Spared, v *Victim) {
	i := slices.IndexFunc(r.spared, func(p Protection) bool { return p.Spared == *s })
	if i < 0 {
		i = len(r.spared)
		r.spared = append(r.spared, Protection{Spared: *s})
	}
	if p := &r.spared[i]; !slices.Contains(p.Jobs, v.Job.ID) && len(p.Jobs) < mostNamed {
		p.Jobs = append(p.Jobs, v.Job.ID)
	}
}
