package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Bounds of a search for room, in steps.
const (
	maxLooks      = 256  // nodes that are looked at closely and have no plan
	maxLooksMixed = 32   // the same, where victims are evicted and others move
	maxTries      = 400  // plans that are put to Place in one way
	maxTriesAll   = 1000 // the same, where all plans are compared
	maxUnsure     = 12   // tasks that might leave, up to which all plans are compared
	maxSmall      = 64   // nodes, up to which all plans are compared
	maxOneByOne   = 256  // tasks that might leave, up to which they are tried one after the other
	maxMoved      = 64   // tasks of a job that moves for another
	maxThinning   = 2048 // victims times tasks, up to which the plan is tried without each victim
	maxScopes     = 32   // groups or domains that are compared
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
	if s.View.Classes().Preemptible() == 0 {
		for _, m := range s.Hooks.means {
			if m.Purpose != Move || place.shortage.freeFor(job) {
				refusal.spare(m.Purpose, false, nil)
			}
		}
		return refusal
	}
	for _, last := range [...]bool{false, true} {
		if last && !s.Hooks.hasLastResort() {
			break
		}
		for from, forms := range choices(job) {
			var best *room
			for i := range forms {
				form := want{job: job, alternative: from + i, choice: from, last: last, bounded: s.Hooks.isBounded(refusal)}
				for k, lacks := range place.shortage.minima(form.alt()) {
					w := form
					w.lacks, w.exactly = lacks, k > 0
					best = s.newRoom(place, &w, refusal).cheaper(best, refusal)
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

// planning is what all searches for a plan need.
type planning struct {
	want     *want
	placer   *placer
	finder   *finder
	accounts *accounts
	heaps    *nodeHeaps
	leaver   *leaver
	trial    *trial
	view     cluster.View
	stmt     *Statement
	fault    *fault
	hosts    *hosts
}

// room is the search for room for what a job wants.
type room struct {
	planning
	plan    []*Victim // nil where there is none
	cost    cost
	found   way // of the search that found it
	looks   int // nodes that were looked at closely and have no plan
	weighed []Option
}

// newRoom prepares the search, and asks the hooks of each purpose for which something
// might leave.
func (s *Session) newRoom(place *placer, w *want, refusal *Refusal) *room {
	leaver := &leaver{want: w, stmt: place.stmt, victims: s.victims, fault: s.fault}
	leaver.prepare(s.Hooks.means, refusal)
	return &room{planning: planning{want: w, placer: place, finder: s.finder, accounts: s.accounts, heaps: s.heaps, leaver: leaver,
		trial: &trial{want: w, leaver: leaver, placer: place, stmt: place.stmt, fault: s.fault},
		view:  s.View, stmt: place.stmt, fault: s.fault, hosts: &hosts{want: w, finder: s.finder}}}
}

// cheaper looks for room, and returns what costs less: this room or the best so far.
func (r *room) cheaper(best *room, refusal *Refusal) *room {
	if !r.leaver.can(evicting | moving) {
		return best
	}
	if r.findPlan(); r.fault.err != nil {
		return nil
	}
	if r.plan == nil {
		r.noteProtected(refusal)
	} else if best == nil || r.cost.compare(&best.cost) < 0 {
		return r
	}
	return best
}

// noteProtected notes in the refusal which victims were protected.
func (r *room) noteProtected(refusal *Refusal) {
	if r.want.last {
		return // what the first search found is told
	}
	for _, m := range r.finder.hooks.means {
		if p := m.Purpose; r.leaver.may[p] != nil && (p != Move || r.accounts.free() >= r.accounts.devicesLacking(r.want.lacks)) {
			refusal.spare(p, false, r.leaver.spared[p])
		}
	}
}

// findPlan looks for a plan, and leaves the statement as it is. Moves cost less than any
// eviction, so they are looked for first; then evictions; then both together.
func (r *room) findPlan() {
	if r.leaver.can(moving) && !r.want.last && !r.want.limited && r.accounts.free() >= r.accounts.devicesLacking(r.want.lacks) {
		r.search(moving)
	}
	if r.plan != nil || !r.leaver.can(evicting) {
		return
	}
	r.search(evicting)
	if r.plan != nil && !small(r.view) {
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
	exits := &exits{leaver: r.leaver, way: w, might: r.leaver.mights(w)}
	every := &everyPlan{r.planning, exits}
	all := every.few()
	if r.trial.limit = r.trial.tries + maxTries; all != nil {
		r.trial.limit = r.trial.tries + maxTriesAll
	}
	if w == evicting|moving && all == nil && r.plan != nil {
		return // so it is where too many tasks might leave
	}
	nodes := &nodewise{planning: r.planning, exits: exits, weighed: r.weighed}
	plan, spent := r.trial.tried(nodes.greedy())
	if all != nil {
		plan, spent = every.cheapest(all, plan, spent, r)
	} else if plan == nil && r.mayHaveMissed() {
		plan, spent = r.trial.tried(r.oneByOne(exits))
	}
	if plan != nil && r.fault.err == nil {
		if plan, spent = r.thinOut(plan, spent); r.plan == nil || spent.compare(&r.cost) < 0 {
			r.plan, r.cost, r.found = plan, spent, w
		}
	}
	if r.plan == nil || r.found == w { // what is told is how the plan was found
		r.looks, r.weighed = nodes.looks, nodes.weighed
	}
}

// carryOut makes the victims of the plan leave, and returns what Place says.
func (r *room) carryOut() *Refusal {
	r.stmt.weighing = r.weighing(r.plan)
	left, _ := r.trial.carryOut(r.plan)
	r.stmt.weighing = nil
	return left
}

// thinOut keeps the victims in their places that the plan does not need.
func (r *room) thinOut(plan []*Victim, spent cost) ([]*Victim, cost) {
	if len(plan) < 2 || len(plan)*len(r.want.lacks) > maxThinning {
		return plan, spent
	}
	if len(plan) <= maxUnsure && hasMoves(plan) {
		return r.cheapestSubset(plan, spent)
	}
	rest := dropUnneeded(plan, r.leaver.victims.droppable(plan, true), func(rest []*Victim) bool { return !r.trial.over() && r.trial.works(rest) })
	if len(rest) == len(plan) {
		return plan, spent
	}
	return r.trial.tried(rest)
}

// cheapestSubset is the cheapest part of the plan that works, even if it frees more beyond what is
// needed. Where victims move, two may have to stay together, since they need room
// themselves.
func (r *room) cheapestSubset(plan []*Victim, spent cost) ([]*Victim, cost) {
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
		p.cost = r.leaver.victims.costOf(p.victims)
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

// mayHaveMissed reports whether a plan may exist that the search node by node has not seen.
func (r *room) mayHaveMissed() bool {
	alt := r.want.alt()
	return r.want.bounded || len(alt.Subgroups) > 0 || !alt.Topology.None() ||
		alt.Whole != nil && r.want.job.Set.Name != "" || // the group must have room for the others of its set too
		slices.ContainsFunc(r.want.lacks, func(t *cluster.Task) bool { return t.Shape != r.want.lacks[0].Shape })
}

// dropUnneeded drops the victims without which the rest is enough, from the last of the order
// on. The rest keeps its order, since some may leave only after others.
func dropUnneeded(plan, order []*Victim, enough func([]*Victim) bool) []*Victim {
	for i := len(order) - 1; i >= 0 && len(plan) > 1; i-- {
		at := slices.Index(plan, order[i])
		rest := slices.Delete(slices.Clone(plan), at, at+1)
		if enough(rest) {
			plan = rest
		}
	}
	return plan
}

// oneByOne makes rivals of the whole cluster leave one after the other until the job is
// placed, and then keeps those in their places that it can. It is for what is not the
// fault of a node, such as the limit of a queue.
func (r *room) oneByOne(exits *exits) []*Victim {
	line := r.leaver.victims.rivals(r.want.job, maxOneByOne, exits.leavable)
	if line == nil { // of too many, those that it must be away from, wherever they are
		line = r.leaver.victims.rivals(r.want.job, maxOneByOne, func(t *cluster.Task) bool { return t.Job.Repels(r.want.job) && exits.leavable(t) })
	}
	if len(line) == 0 {
		return nil
	}
	var plan []*Victim
	for size := 1; ; size *= 2 {
		plan = exits.first(line, min(size, len(line)))
		if len(plan) > 0 && r.trial.works(plan) {
			break
		}
		if size >= len(line) || r.trial.over() {
			return nil
		}
	}
	return dropUnneeded(plan, r.leaver.victims.droppable(plan, true), func(rest []*Victim) bool { return !r.trial.over() && r.trial.works(rest) })
}
