package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Bounds of a search for room, in steps.
const (
	maxLooks  = 256  // nodes that are looked at closely and have no plan
	maxMixed  = 32   // the same, where victims are evicted and others move
	maxTries  = 400  // plans that are put to Place in one way
	maxAll    = 1000 // the same, where all plans are compared
	maxUnsure = 12   // tasks that might leave, up to which all plans are compared
	maxSmall  = 64   // nodes, up to which all plans are compared
	maxInLine = 256  // tasks that might leave, up to which they are tried one after the other
	maxMoved  = 64   // tasks of a job that moves for another
	maxThin   = 2048 // victims times tasks, up to which the plan is tried without each victim
	maxScopes = 32   // groups or domains that are compared
)

// way is how victims leave in a search.
type way uint8

const (
	evicting way = 1 << iota // by Reclaim or Preempt
	moving                   // by Move
)

// MakeRoom frees room for the job's minimum. It looks for the plan that takes least
// from other jobs, whose victims leave for any of the purposes that the plugins of
// the profile have means for, and that their hooks consent to. Place judges the plan:
// one that it does not accept is taken back. Where there is no plan, the last resorts
// of the plugins are tried.
//
// It returns what Place says, or the refusal where no plan was found.
func (s *Session) MakeRoom(stmt *Statement, job *cluster.Job, refusal *Refusal) *Refusal {
	if refusal.Permanent {
		return refusal // no eviction would help
	}
	if s.State.Preemptible() == 0 {
		for _, m := range s.hooks.means {
			if m.Purpose != Move || s.FreeFor(job) {
				refusal.spare(m.Purpose, false, nil)
			}
		}
		return refusal
	}
	for _, last := range [...]bool{false, true} {
		if last && !s.lastResort() {
			break
		}
		for from, forms := range choices(job) {
			var best *room
			for i := range forms {
				form := &room{Session: s, stmt: stmt, job: job, alternative: from + i, choice: from, last: last}
				if best = form.cheaper(best, refusal); s.err != nil {
					return refusal
				}
			}
			if best != nil {
				return best.carryOut()
			}
		}
	}
	return refusal
}

// lastResort reports whether a plugin has one.
func (s *Session) lastResort() bool {
	return slices.ContainsFunc(s.hooks.means, func(m Means) bool {
		return slices.ContainsFunc(s.hooks.victims[m.Purpose], func(h hook[VictimFn]) bool { return h.last != nil })
	})
}

// room is the search for one alternative of one job.
type room struct {
	*Session
	stmt        *Statement
	job         *cluster.Job
	alternative int
	choice      int // the first of the alternatives that it is compared with
	lacks       []*cluster.Task
	last        bool // the last resorts are asked
	may         [purposes]func(*Victim) answer
	might       [purposes]func(cluster.Class) bool // nil: any class may have victims
	reasons     [purposes]Reason

	way     way                      // of the search that runs
	class   func(cluster.Class) bool // might has victims that leave in this way; nil: any
	scratch []*cluster.Task
	prices  []price
	bounded bool // the limit of a queue is in the way, and not a node
	limited bool // no node was looked at: moves alone do not help
	exactly bool // these tasks are to be placed, and not others that would do
	hosts   map[*cluster.Node]bool
	sums    map[string]int64 // of what is lacking, by resource

	plan  []*Victim // nil where there is none
	cost  cost
	found way // of the search that found it

	looks, tries int
	most         int // tries that the search which runs may reach
	spared       [purposes][]Protection
	counted      map[protected]bool
	weighed      []Option
}

func (r *room) alt() *cluster.Alternative { return &r.job.Alternatives[r.alternative] }

// cheaper looks for room in the form that r is for, and returns what costs least.
func (r *room) cheaper(best *room, refusal *Refusal) *room {
	for k, lacks := range r.minima(r.alt()) {
		form := *r
		form.lacks, form.bounded, form.exactly = lacks, r.Session.bounded(refusal), k > 0
		if form.prepare(refusal); !form.can(evicting | moving) {
			continue
		}
		if form.find(); r.err != nil {
			return nil
		}
		if form.plan == nil {
			form.tell(refusal)
		} else if best == nil || form.cost.compare(&best.cost) < 0 {
			best = &form
		}
	}
	return best
}

// prepare asks the hooks of each purpose for which something might leave.
func (r *room) prepare(refusal *Refusal) {
	for _, m := range r.hooks.means {
		if !refusal.evictable(r.alternative) {
			continue
		}
		r.reasons[m.Purpose] = m.Reason
		if r.may[m.Purpose] = r.victims(m.Purpose, r.job, r.lacks, r.last); r.may[m.Purpose] != nil {
			r.might[m.Purpose] = r.classes(m.Purpose, r.job, r.lacks, r.last)
		} else if !r.last {
			refusal.spare(m.Purpose, true, nil)
		}
	}
	if r.limited = refusal.limited(r.alternative); r.limited && !r.can(evicting) {
		r.may[Move] = nil // moving others does not change what a queue may have
	}
}

// can reports whether victims may leave in one of the ways.
func (r *room) can(w way) bool {
	return w&moving != 0 && r.may[Move] != nil || w&evicting != 0 && (r.may[Reclaim] != nil || r.may[Preempt] != nil)
}

// tell notes in the refusal which victims were protected.
func (r *room) tell(refusal *Refusal) {
	if r.last {
		return // what the first search found is told
	}
	for _, m := range r.hooks.means {
		if p := m.Purpose; r.may[p] != nil && (p != Move || r.free() >= r.devicesLacking(r.lacks)) {
			refusal.spare(p, false, r.spared[p])
		}
	}
}

// of is what was tried for the alternative; nil where it was not.
func (r *Refusal) of(alternative int) *Attempt {
	i := slices.IndexFunc(r.Attempts, func(a Attempt) bool { return a.from <= alternative && alternative < a.to })
	if i < 0 {
		return nil
	}
	return &r.Attempts[i]
}

// evictable reports whether room that others leave might help the alternative.
func (r *Refusal) evictable(alternative int) bool {
	a := r.of(alternative)
	return a != nil && !a.Never && slices.ContainsFunc(a.tallies(), func(c Tally) bool { return c.Cure&Evict != 0 })
}

// limited reports whether the alternative was turned down before any node was looked at.
func (r *Refusal) limited(alternative int) bool {
	a := r.of(alternative)
	return a != nil && a.Before != nil
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

// find looks for a plan, and leaves the statement as it is. Moves cost less than any
// eviction, so they are looked for first; then evictions; then both together.
func (r *room) find() {
	quiet := r.quiet
	r.quiet = true // what fails here needs no explanation
	defer func() { r.quiet = quiet }()
	if r.can(moving) && !r.last && !r.limited && r.free() >= r.devicesLacking(r.lacks) {
		r.search(moving)
	}
	if r.plan != nil || !r.can(evicting) {
		return
	}
	r.search(evicting)
	if r.plan != nil && !r.small() {
		return // on a large cluster the plan that evicts is good enough
	}
	if r.can(moving) && r.anyOf(evicting) {
		r.search(evicting | moving)
	}
}

// search looks for a plan that costs less than the one that is known.
func (r *room) search(w way) {
	if r.err != nil {
		return
	}
	looks, weighed := r.looks, r.weighed
	defer func() {
		if r.plan != nil && r.found != w { // what is told is how this plan was found
			r.looks, r.weighed = looks, weighed
		}
	}()
	r.way, r.class, r.most, r.looks = w, r.mights(w), r.tries+maxTries, 0
	all := r.few()
	if all != nil {
		r.most = r.tries + maxAll
	}
	if w == evicting|moving && all == nil && r.plan != nil {
		return // so it is where too many tasks might leave
	}
	plan, spent := r.tried(r.greedy())
	if all != nil {
		plan, spent = r.cheapest(all, plan, spent)
	} else if plan == nil && r.unsure() {
		plan, spent = r.tried(r.inLine())
	}
	if plan == nil || r.err != nil {
		return
	}
	if plan, spent = r.thin(plan, spent); r.plan == nil || spent.compare(&r.cost) < 0 {
		r.plan, r.cost, r.found = plan, spent, w
	}
}

// tried is the plan with what it costs; nil where it does not work.
func (r *room) tried(plan []*Victim) ([]*Victim, cost) {
	if plan == nil {
		return nil, cost{}
	}
	spent, ok := r.try(plan)
	if !ok {
		return nil, cost{}
	}
	return plan, spent
}

// over reports whether the search has used up its tries.
func (r *room) over() bool { return r.tries >= r.most || r.err != nil }

// carryOut makes the victims of the plan leave, and returns what Place says.
func (r *room) carryOut() *Refusal {
	quiet := r.quiet
	r.quiet = true
	defer func() { r.quiet = quiet }()
	r.stmt.weighing = r.weighing(r.plan)
	left, _ := r.judge(r.plan)
	r.stmt.weighing = nil
	return left
}

// thin keeps the victims in their places that the plan does not need.
func (r *room) thin(plan []*Victim, spent cost) ([]*Victim, cost) {
	if len(plan) < 2 || len(plan)*len(r.lacks) > maxThin {
		return plan, spent
	}
	if len(plan) <= maxUnsure && slices.ContainsFunc(plan, func(v *Victim) bool { return v.Purpose == Move }) {
		return r.part(plan, spent)
	}
	rest := r.keep(plan, func(rest []*Victim) bool { return !r.over() && r.works(rest) })
	if len(rest) == len(plan) {
		return plan, spent
	}
	return r.tried(rest)
}

// part is the cheapest part of the plan that works, even if it frees more beyond what is
// needed. Where victims move, two may have to stay together, since they need room
// themselves.
func (r *room) part(plan []*Victim, spent cost) ([]*Victim, cost) {
	type part struct {
		victims []*Victim
		cost    cost
	}
	var parts []part
	for mask := 1; mask < 1<<len(plan)-1; mask++ {
		var p part
		for i, v := range plan {
			if mask>>i&1 == 1 {
				p.victims = append(p.victims, v)
			}
		}
		p.cost = costOf(r.State, p.victims)
		parts = append(parts, p)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return a.cost.compare(&b.cost) })
	for _, p := range parts {
		if r.over() {
			break
		}
		if found, less := r.tried(p.victims); found != nil {
			return found, less
		}
	}
	return plan, spent
}

// unsure reports whether a plan may exist that the search node by node has not seen.
func (r *room) unsure() bool {
	alt := r.alt()
	return r.bounded || len(alt.Subgroups) > 0 || !alt.Topology.None() ||
		alt.Whole != nil && r.job.Set.Name != "" || // the group must have room for the others of its set too
		slices.ContainsFunc(r.lacks, func(t *cluster.Task) bool { return t.Shape != r.lacks[0].Shape })
}

// works reports whether the plan works, and takes it back.
func (r *room) works(plan []*Victim) bool {
	_, ok := r.try(plan)
	return ok
}

// try carries the plan out, sees what it costs, and takes it back.
func (r *room) try(plan []*Victim) (cost, bool) {
	mark := r.stmt.Checkpoint()
	_, ok := r.judge(plan)
	ok = ok && !slices.ContainsFunc(plan, landsBack)
	spent := costOf(r.State, plan)
	if ok {
		spent.beyond = r.stmt.beyond(mark)
	}
	if r.last && ok {
		ok = r.fair(plan, mark)
	} else {
		r.stmt.Rollback(mark)
	}
	return spent, ok
}

// judge carries the plan out: the victims leave, Place puts the job where they were,
// and those that move land. It leaves the statement as it is; false means that the
// plan does not work.
func (r *room) judge(plan []*Victim) (*Refusal, bool) {
	r.tries++
	if !r.leaveAll(plan) {
		return &Refusal{}, false
	}
	mark := r.stmt.Checkpoint()
	if r.exactly && !r.seat(nil) {
		return &Refusal{}, false
	}
	left := r.place()
	fits := r.fits(r.job, left) && r.err == nil
	if fits && moves(plan) && !r.land(plan) {
		r.stmt.Rollback(mark)
		return r.together(plan)
	}
	return left, fits
}

// place is Place in a form that room is made for: the victims may leave for that one,
// and others are looked at in their turn.
func (r *room) place() *Refusal {
	return r.placeAs(r.stmt, r.job, func(from int) bool { return from == r.choice })
}

// moves reports whether victims of the plan move.
func moves(plan []*Victim) bool {
	return slices.ContainsFunc(plan, func(v *Victim) bool { return v.Purpose == Move })
}
