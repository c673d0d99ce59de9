package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Bounds of a search for room. They count steps and not time, so that decisions are the same
// on every machine.
const (
	maxLooks      = 256  // nodes without a plan that are looked at
	maxLooksMixed = 32   // nodes without a plan that are looked at, if some victims are evicted and others move
	maxTries      = 400  // plans that are passed to Place in one search
	maxTriesAll   = 1000 // plans that are passed to Place, if all plans are compared
	maxUnsure     = 12   // possible victims up to which all plans are compared
	maxSmall      = 64   // nodes up to which all plans are compared
	maxOneByOne   = 256  // possible victims up to which they are tried one after the other
	maxMoved      = 64   // tasks of a job that moves as a whole
	maxThinning   = 2048 // victims times lacking tasks up to which the plan is tried without each victim
	maxScopes     = 32   // node groups or domains that are compared
)

// way says whether the victims of a search are evicted, moved, or both.
type way uint8

const (
	evicting way = 1 << iota // for the purposes Reclaim and Preempt
	moving                   // for the purpose Move
)

// makeRoom is the Adapter of AddEvictionPurpose.
func makeRoom(stmt *Statement, job *cluster.Job, r *Refusal) *Refusal {
	return stmt.session.MakeRoom(stmt, job, r)
}

// MakeRoom frees room by evicting or moving other tasks, for the tasks that the turn is for:
// the minimum of the job or one surplus task. It searches the choices of the job in order,
// and takes the cheapest plan that it finds for the first choice that has one (see Cost). The
// victims of a plan may be evicted for any purpose that a plugin registered with
// AddEvictionPurpose, if the hooks of that purpose allow it. Place decides whether the plan
// works; a plan that does not is rolled back. If there is no plan for any choice, the last
// resorts of the plugins are tried (see AddLastResort).
//
// It returns what Place returned, or the given refusal if no plan was found.
func (s *Session) MakeRoom(stmt *Statement, job *cluster.Job, refusal *Refusal) *Refusal {
	if refusal.Permanent {
		return refusal // evictions cannot cure it
	}
	place := s.placer(stmt)
	place.aim.quiet = true // the refusal already has the explanation
	if s.View.Classes().Preemptible() == 0 {
		for _, m := range s.Hooks.evictionPurposes {
			if m.Purpose != Move || place.shortage.freeFor(job) {
				refusal.addProtected(m.Purpose, false, nil)
			}
		}
		return refusal
	}
	defer s.heaps.releaseRooms(s.heaps.roomsInUse)
	for _, last := range [...]bool{false, true} {
		if last && !hasLastResort(s.Hooks) {
			break
		}
		for from, forms := range choices(job) {
			var best *room
			for i := range forms {
				form := want{job: job, alternative: from + i, choice: from, last: last, bounded: isBounded(s.Hooks, refusal)}
				for k, lacks := range place.shortage.minima(form.alt()) {
					w := form
					w.lacks, w.exactly = lacks, k > 0
					s.rooms++
					if best != nil {
						best.withdraw() // the next search begins with the State as it was
					}
					r := s.newRoom(&place, &w, refusal)
					if best = r.cheaper(best, refusal); best != r {
						r.withdraw()
					}
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

// planning is what all kinds of searches for a plan use.
type planning struct {
	want     *want
	placer   *placer
	finder   *finder
	accounts *accounts
	heaps    *nodeHeaps
	evictor  *evictor
	trial    *trial
	view     cluster.View
	stmt     *Statement
	fault    *fault
	hosts    *hosts
}

// room is one search for room, and the best plan that it found.
type room struct {
	planning
	plan    []*Victim // nil: none was found
	cost    cost
	found   way // the way of the search that found plan
	looks   int // nodes for which a plan was searched for and not found
	weighed []Option
	done    *carriedOut // the plan is carried out in the statement already; nil: it is not
	// markPassed is called before an eviction that may stay: see backlog.markPassed.
	markPassed func()
	memory     *searchParts // of the present search
}

// newRoom prepares a search. It calls the VictimRules of each purpose.
func (s *Session) newRoom(place *placer, w *want, refusal *Refusal) *room {
	parts := s.heaps.takeRoom()
	parts.evictor, parts.hosts = evictor{want: w, stmt: place.stmt, victims: &s.victims, fault: s.fault}, hosts{want: w, finder: &s.finder}
	evictor := &parts.evictor
	purposes := s.Hooks.evictionPurposes
	if s.options.MovesOnly {
		purposes = slices.DeleteFunc(slices.Clone(purposes), func(e EvictionPurpose) bool { return e.Purpose != Move })
	}
	evictor.prepare(purposes, refusal)
	markPassed := func() {}
	if s.options.Patient {
		markPassed = s.engine.backlog.markPassed
	}
	parts.trial = trial{want: w, evictor: evictor, placer: place, stmt: place.stmt, fault: s.fault}
	parts.room = room{markPassed: markPassed, planning: planning{want: w, placer: place, finder: &s.finder, accounts: &s.accounts, heaps: &s.heaps, evictor: evictor,
		trial: &parts.trial, view: s.View, stmt: place.stmt, fault: s.fault, hosts: &parts.hosts}, memory: &parts.search}
	return &parts.room
}

// roomParts is a room with its parts, so that they are allocated together.
type roomParts struct {
	room    room
	evictor evictor
	trial   trial
	hosts   hosts
	search  searchParts
}

// searchParts is the parts of one search of a room.
type searchParts struct {
	ways  evictionWays
	nodes nodewise
	once  staying
}

// takeRoom returns the memory of a room that is not in use.
func (h *nodeHeaps) takeRoom() *roomParts {
	if h.roomsInUse == len(h.rooms) {
		h.rooms = append(h.rooms, &roomParts{})
	}
	h.roomsInUse++
	return h.rooms[h.roomsInUse-1]
}

// releaseRooms ends the use of all rooms but the first ones.
func (h *nodeHeaps) releaseRooms(first int) { h.roomsInUse = first }

// cheaper searches for a plan and returns the cheaper of this room and the best so far. If
// it finds none, it notes in the refusal which victims were protected.
func (r *room) cheaper(best *room, refusal *Refusal) *room {
	if !r.evictor.can(evicting | moving) {
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

// noteProtected adds to the refusal which victims were protected, by purpose.
func (r *room) noteProtected(refusal *Refusal) {
	if r.want.last {
		return // the refusal has the victims that were protected in the first search
	}
	for _, m := range r.finder.hooks.evictionPurposes {
		if p := m.Purpose; r.evictor.may[p] && (p != Move || r.accounts.free() >= r.accounts.devicesLacking(r.want.lacks)) {
			refusal.addProtected(p, false, r.evictor.protections[p])
		}
	}
}

// findPlan searches for a plan and rolls back all its changes. Moves cost less than any
// eviction, so plans that only move tasks are tried first, then plans that only evict, then
// plans that do both. Plans that only move are not tried in a last resort, if the limit of a
// queue is the obstacle, or if fewer devices are free than the job lacks. Plans that do both
// are not tried if moves alone suffice, if no running task may be evicted, or if none may be
// moved. If there is a plan that only evicts, they are tried only if the cluster is small and
// has so few possible victims that all plans can be compared.
func (r *room) findPlan() {
	if r.evictor.can(moving) && !r.want.last && !r.want.limited && r.accounts.free() >= r.accounts.devicesLacking(r.want.lacks) {
		r.search(moving)
	}
	if r.plan != nil || !r.evictor.can(evicting) {
		return
	}
	r.search(evicting)
	if r.plan != nil && !small(r.view) {
		return // on a large cluster, searching for a plan that also moves tasks would take too long
	}
	if r.evictor.can(moving) && r.evictor.anyOf(evicting) {
		r.search(evicting | moving)
	}
}

// search searches for a plan that costs less than the known one.
func (r *room) search(w way) {
	if r.fault.err != nil {
		return
	}
	ways, nodes := &r.memory.ways, &r.memory.nodes
	*ways = evictionWays{evictor: r.evictor, way: w}
	ways.might = r.evictor.mightsIn(&ways.memory[0], w, false)
	if ways.firsts = ways.might; r.evictor.narrowsFirst(w) {
		ways.firsts = r.evictor.mightsIn(&ways.memory[1], w, true)
	}
	var every *everyPlan
	var all []rival
	if small(r.view) {
		every = &everyPlan{r.planning, ways}
		all = every.few()
	}
	if r.trial.limit = r.trial.tries + maxTries; all != nil {
		r.trial.limit = r.trial.tries + maxTriesAll
	}
	if w == evicting|moving && all == nil && r.plan != nil {
		return // there are too many possible victims to compare all plans
	}
	*nodes = nodewise{planning: r.planning, ways: ways, weighed: r.weighed, nodewiseMemory: r.heaps.memory}
	if all == nil && r.mayStay() {
		nodes.once, r.memory.once = &r.memory.once, staying{room: r, mark: r.stmt.Checkpoint()}
	}
	plan, spent := nodes.greedy(), cost{}
	r.heaps.memory = nodes.nodewiseMemory
	if all == nil && r.isFinal(plan) {
		if r.looks, r.weighed = nodes.looks, nodes.weighed; r.carryOutOnce(plan, w, nodes.once) {
			return
		}
		plan = nil
	} else {
		plan, spent = r.trial.tried(plan)
	}
	if all != nil {
		plan, spent = every.cheapest(all, plan, spent, r)
	} else if plan == nil && r.mayHaveMissed() {
		plan, spent = r.trial.tried(r.oneByOne(ways))
	}
	if plan != nil && r.fault.err == nil {
		if plan, spent = r.thinOut(plan, spent); r.plan == nil || spent.compare(&r.cost) < 0 {
			r.plan, r.cost, r.found = plan, spent, w
		}
	}
	if r.plan == nil || r.found == w { // explanations are about the search that found the plan
		r.looks, r.weighed = nodes.looks, nodes.weighed
	}
}

// carryOut evicts and moves the victims of the plan, places the job, and returns what Place
// returned.
func (r *room) carryOut() *Refusal {
	if r.done != nil {
		return r.done.left
	}
	r.markPassed()
	r.stmt.planSearch = r.planSearch(r.plan)
	left, _ := r.trial.carryOut(r.plan, false)
	r.stmt.planSearch = nil
	return left
}

// thinOut drops the victims that the plan does not need, and returns the rest with its cost.
func (r *room) thinOut(plan []*Victim, spent cost) ([]*Victim, cost) {
	if !r.mayThinOut(plan) {
		return plan, spent
	}
	if len(plan) <= maxUnsure && hasMoves(plan) {
		return r.cheapestSubset(plan, spent)
	}
	rest := dropUnneeded(plan, r.evictor.victims.droppable(plan, true), func(rest []*Victim) bool { return !r.trial.over() && r.trial.works(rest) })
	if len(rest) == len(plan) {
		return plan, spent
	}
	return r.trial.tried(rest)
}

// mayThinOut reports whether thinOut may drop victims of the plan. If the plan and the job are large,
// that would take too long.
func (r *room) mayThinOut(plan []*Victim) bool {
	return len(plan) > 1 && len(plan)*len(r.want.lacks) <= maxThinning
}

// cheapestSubset returns the cheapest subset of the plan that works, even if it frees more
// room than is needed. Subsets are compared, and not single victims dropped, because tasks
// that move need room themselves: the plan may work without two victims, but not without
// only one of them.
func (r *room) cheapestSubset(plan []*Victim, spent cost) ([]*Victim, cost) {
	type subset struct {
		victims []*Victim
		cost    cost
	}
	var subsets []subset
	for mask := 1; mask < 1<<len(plan)-1; mask++ {
		var p subset
		for i, v := range plan {
			if mask>>i&1 == 1 {
				p.victims = append(p.victims, v)
			}
		}
		p.cost = r.evictor.victims.costOf(p.victims)
		subsets = append(subsets, p)
	}
	slices.SortStableFunc(subsets, func(a, b subset) int { return a.cost.compare(&b.cost) })
	for _, p := range subsets {
		if r.trial.over() {
			break
		}
		if found, less := r.trial.tried(p.victims); found != nil {
			return found, less
		}
	}
	return plan, spent
}

// mayHaveMissed reports whether a plan may exist that the search node by node cannot find.
func (r *room) mayHaveMissed() bool {
	alt := r.want.alt()
	return r.want.bounded || len(alt.Subgroups) > 0 || !alt.Topology.None() ||
		alt.Whole != nil && r.want.job.Set.Name != "" || // the node group must have room for the other jobs of the set, too
		slices.ContainsFunc(r.want.lacks, func(t *cluster.Task) bool { return t.Shape != r.want.lacks[0].Shape })
}

// dropUnneeded drops victims from the plan as long as the rest is enough. Victims are tried
// in reverse of the given order. The rest keeps the order of the plan, because hooks may
// allow a victim only after others.
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

// oneByOne evicts or moves rivals of the whole cluster, in their order, until the job can be
// placed, and then drops the victims that are not needed. It is for obstacles that do not
// belong to one node, such as the limit of a queue.
func (r *room) oneByOne(ways *evictionWays) []*Victim {
	line := r.evictor.victims.rivals(r.want.job, maxOneByOne, ways.isRemovable)
	if line == nil { // too many: consider only tasks that the job must be kept apart from
		line = r.evictor.victims.rivals(r.want.job, maxOneByOne, func(t *cluster.Task) bool { return t.Job.Repels(r.want.job) && ways.isRemovable(t) })
	}
	if len(line) == 0 {
		return nil
	}
	var plan []*Victim
	for size := 1; ; size *= 2 {
		plan = ways.first(line, min(size, len(line)))
		if len(plan) > 0 && r.trial.works(plan) {
			break
		}
		if size >= len(line) || r.trial.over() {
			return nil
		}
	}
	return dropUnneeded(plan, r.evictor.victims.droppable(plan, true), func(rest []*Victim) bool { return !r.trial.over() && r.trial.works(rest) })
}
