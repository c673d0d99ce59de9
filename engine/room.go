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
	place := s.placer(stmt)
	place.aim.quiet = true // what fails here needs no explanation
	if s.State.Preemptible() == 0 {
		for _, m := range s.hooks.means {
			if m.Purpose != Move || place.shortage.freeFor(job) {
				refusal.spare(m.Purpose, false, nil)
			}
		}
		return refusal
	}
	for _, last := range [...]bool{false, true} {
		if last && !s.hooks.lastResort() {
			break
		}
		for from, forms := range choices(job) {
			var best *room
			for i := range forms {
				form := want{job: job, alternative: from + i, choice: from, last: last, bounded: s.hooks.bounded(refusal)}
				for k, lacks := range place.shortage.minima(form.alt()) {
					w := form
					w.lacks, w.exactly = lacks, k > 0
					best = s.room(place, &w, refusal).cheaper(best, refusal)
					if s.fault.err != nil {
						return refusal
					}
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
func (h *hooks) lastResort() bool {
	return slices.ContainsFunc(h.means, func(m Means) bool {
		return slices.ContainsFunc(h.victims[m.Purpose], func(h hook[VictimFn]) bool { return h.last != nil })
	})
}

// want is what room is made for: tasks that a job lacks in one of its forms.
type want struct {
	job         *cluster.Job
	alternative int
	choice      int // the first of the alternatives that it is compared with
	lacks       []*cluster.Task
	last        bool // the last resorts are asked
	bounded     bool // the limit of a queue is in the way, and not a node
	limited     bool // no node was looked at: moves alone do not help
	exactly     bool // these tasks are to be placed, and not others that would do
}

func (w *want) alt() *cluster.Alternative { return &w.job.Alternatives[w.alternative] }

// room is the search for room for what a job wants.
type room struct {
	want     *want
	placer   *placer
	accounts *accounts
	heaps    *heaps
	leaver   *leaver
	trial    *trial
	state    *cluster.State
	stmt     *Statement
	fault    *fault
	hosts    *hosts

	plan    []*Victim // nil where there is none
	cost    cost
	found   way // of the search that found it
	looks   int // nodes that were looked at closely and have no plan
	weighed []Option
}

// room prepares the search, and asks the hooks of each purpose for which something
// might leave.
func (s *Session) room(place *placer, w *want, refusal *Refusal) *room {
	leaver := &leaver{want: w, stmt: place.stmt, victims: s.victims, fault: s.fault}
	leaver.prepare(s.hooks.means, refusal)
	return &room{want: w, placer: place, accounts: s.accounts, heaps: s.heaps, leaver: leaver,
		trial: &trial{want: w, leaver: leaver, placer: place, stmt: place.stmt, fault: s.fault},
		state: s.State, stmt: place.stmt, fault: s.fault, hosts: &hosts{want: w, finder: s.finder}}
}

// cheaper looks for room, and returns what costs less: this room or the best so far.
func (r *room) cheaper(best *room, refusal *Refusal) *room {
	if !r.leaver.can(evicting | moving) {
		return best
	}
	if r.find(); r.fault.err != nil {
		return nil
	}
	if r.plan == nil {
		r.tell(refusal)
	} else if best == nil || r.cost.compare(&best.cost) < 0 {
		return r
	}
	return best
}

// prepare asks the hooks of each purpose for which something might leave.
func (l *leaver) prepare(means []Means, refusal *Refusal) {
	w := l.want
	for _, m := range means {
		if !refusal.evictable(w.alternative) {
			continue
		}
		l.reasons[m.Purpose] = m.Reason
		if l.may[m.Purpose] = l.victims.may(m.Purpose, w.job, w.lacks, w.last); l.may[m.Purpose] != nil {
			l.might[m.Purpose] = l.victims.might(m.Purpose, w.job, w.lacks, w.last)
		} else if !w.last {
			refusal.spare(m.Purpose, true, nil)
		}
	}
	if w.limited = refusal.limited(w.alternative); w.limited && !l.can(evicting) {
		l.may[Move] = nil // moving others does not change what a queue may have
	}
}

// can reports whether victims may leave in one of the ways.
func (l *leaver) can(w way) bool {
	return w&moving != 0 && l.may[Move] != nil || w&evicting != 0 && (l.may[Reclaim] != nil || l.may[Preempt] != nil)
}

// tell notes in the refusal which victims were protected.
func (r *room) tell(refusal *Refusal) {
	if r.want.last {
		return // what the first search found is told
	}
	for _, m := range r.placer.finder.hooks.means {
		if p := m.Purpose; r.leaver.may[p] != nil && (p != Move || r.accounts.free() >= r.accounts.devicesLacking(r.want.lacks)) {
			refusal.spare(p, false, r.leaver.spared[p])
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
func (h *hooks) bounded(r *Refusal) bool {
	return slices.ContainsFunc(r.Attempts, func(a Attempt) bool {
		return a.Before != nil || slices.ContainsFunc(a.Counts, func(c Tally) bool {
			return slices.ContainsFunc(h.predicates, func(p hook[PredicateFn]) bool { return p.plugin == c.Plugin })
		})
	})
}

// find looks for a plan, and leaves the statement as it is. Moves cost less than any
// eviction, so they are looked for first; then evictions; then both together.
func (r *room) find() {
	if r.leaver.can(moving) && !r.want.last && !r.want.limited && r.accounts.free() >= r.accounts.devicesLacking(r.want.lacks) {
		r.search(moving)
	}
	if r.plan != nil || !r.leaver.can(evicting) {
		return
	}
	r.search(evicting)
	if r.plan != nil && !small(r.state) {
		return // on a large cluster the plan that evicts is good enough
	}
	if r.leaver.can(moving) && r.leaver.anyOf(evicting) {
		r.search(evicting | moving)
	}
}

// search looks for a plan that costs less than the one that is known.
func (r *room) search(w way) {
	if r.fault.err != nil {
		return
	}
	exits := &exits{leaver: r.leaver, way: w, class: r.leaver.mights(w)}
	every := &everyPlan{want: r.want, exits: exits, leaver: r.leaver, trial: r.trial, accounts: r.accounts, hosts: r.hosts, state: r.state, stmt: r.stmt, fault: r.fault}
	all := every.few()
	if r.trial.most = r.trial.tries + maxTries; all != nil {
		r.trial.most = r.trial.tries + maxAll
	}
	if w == evicting|moving && all == nil && r.plan != nil {
		return // so it is where too many tasks might leave
	}
	nodes := &nodewise{want: r.want, exits: exits, leaver: r.leaver, trial: r.trial, placer: r.placer, finder: r.placer.finder, accounts: r.accounts, heaps: r.heaps,
		state: r.state, stmt: r.stmt, fault: r.fault, weighed: r.weighed}
	plan, spent := r.trial.tried(nodes.greedy())
	if all != nil {
		plan, spent = every.cheapest(all, plan, spent, r)
	} else if plan == nil && r.unsure() {
		plan, spent = r.trial.tried(r.inLine(exits))
	}
	if plan != nil && r.fault.err == nil {
		if plan, spent = r.thin(plan, spent); r.plan == nil || spent.compare(&r.cost) < 0 {
			r.plan, r.cost, r.found = plan, spent, w
		}
	}
	if r.plan == nil || r.found == w { // what is told is how the plan was found
		r.looks, r.weighed = nodes.looks, nodes.weighed
	}
}

// trial carries plans out, judges them by the State that they end in, and takes them back.
type trial struct {
	want   *want
	leaver *leaver
	placer *placer
	stmt   *Statement
	fault  *fault
	tries  int // plans that were put to Place
	most   int // tries that the search which runs may reach
}

// tried is the plan with what it costs; nil where it does not work.
func (x *trial) tried(plan []*Victim) ([]*Victim, cost) {
	if plan == nil {
		return nil, cost{}
	}
	spent, ok := x.try(plan)
	if !ok {
		return nil, cost{}
	}
	return plan, spent
}

// over reports whether the search has used up its tries.
func (x *trial) over() bool { return x.tries >= x.most || x.fault.err != nil }

// carryOut makes the victims of the plan leave, and returns what Place says.
func (r *room) carryOut() *Refusal {
	r.stmt.weighing = r.weighing(r.plan)
	left, _ := r.trial.judge(r.plan)
	r.stmt.weighing = nil
	return left
}

// thin keeps the victims in their places that the plan does not need.
func (r *room) thin(plan []*Victim, spent cost) ([]*Victim, cost) {
	if len(plan) < 2 || len(plan)*len(r.want.lacks) > maxThin {
		return plan, spent
	}
	if len(plan) <= maxUnsure && slices.ContainsFunc(plan, func(v *Victim) bool { return v.Purpose == Move }) {
		return r.part(plan, spent)
	}
	rest := keep(plan, func(rest []*Victim) bool { return !r.trial.over() && r.trial.works(rest) })
	if len(rest) == len(plan) {
		return plan, spent
	}
	return r.trial.tried(rest)
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
		p.cost = costOf(r.state, p.victims)
		parts = append(parts, p)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return a.cost.compare(&b.cost) })
	for _, p := range parts {
		if r.trial.over() {
			break
		}
		if found, less := r.trial.tried(p.victims); found != nil {
			return found, less
		}
	}
	return plan, spent
}

// unsure reports whether a plan may exist that the search node by node has not seen.
func (r *room) unsure() bool {
	alt := r.want.alt()
	return r.want.bounded || len(alt.Subgroups) > 0 || !alt.Topology.None() ||
		alt.Whole != nil && r.want.job.Set.Name != "" || // the group must have room for the others of its set too
		slices.ContainsFunc(r.want.lacks, func(t *cluster.Task) bool { return t.Shape != r.want.lacks[0].Shape })
}

// works reports whether the plan works, and takes it back.
func (x *trial) works(plan []*Victim) bool {
	_, ok := x.try(plan)
	return ok
}

// try carries the plan out, sees what it costs, and takes it back.
func (x *trial) try(plan []*Victim) (cost, bool) {
	mark := x.stmt.Checkpoint()
	_, ok := x.judge(plan)
	ok = ok && !slices.ContainsFunc(plan, landsBack)
	spent := costOf(x.placer.finder.state, plan)
	if ok {
		spent.beyond = x.stmt.beyond(mark)
	}
	if x.want.last && ok {
		ok = x.fair(plan, mark)
	} else {
		x.stmt.Rollback(mark)
	}
	return spent, ok
}

// judge carries the plan out: the victims leave, Place puts the job where they were,
// and those that move land. It leaves the statement as it is; false means that the
// plan does not work.
func (x *trial) judge(plan []*Victim) (*Refusal, bool) {
	x.tries++
	if !x.leaver.leaveAll(plan) {
		return &Refusal{}, false
	}
	mark := x.stmt.Checkpoint()
	if x.want.exactly && !x.seat(nil) {
		return &Refusal{}, false
	}
	left := x.place()
	fits := x.placer.aim.met(x.want.job, left) && x.fault.err == nil
	if fits && moves(plan) && !x.land(plan) {
		x.stmt.Rollback(mark)
		return x.together(plan)
	}
	return left, fits
}

// place is Place in a form that room is made for: the victims may leave for that one,
// and others are looked at in their turn.
func (x *trial) place() *Refusal {
	return x.placer.placeAs(x.want.job, func(from int) bool { return from == x.want.choice })
}

// moves reports whether victims of the plan move.
func moves(plan []*Victim) bool {
	return slices.ContainsFunc(plan, func(v *Victim) bool { return v.Purpose == Move })
}
