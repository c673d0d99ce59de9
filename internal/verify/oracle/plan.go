package oracle

import (
	"cmp"
	"math/bits"
	"slices"
)

// The limits of the search for one turn. Cases that exceed them are only counted.
const (
	maxPlans = 20_000
	maxSteps = 400_000 // of the search for placements
)

// all is the bound for plans that may evict and move any task.
var all = plan{evicted: ^uint64(0), moved: ^uint64(0)}

// search looks for the cheapest plan for one request.
type search struct {
	*board
	*request
	within plan  // the tasks that may be evicted, and those that may move
	under  *cost // the plan must cost less; nil means any cost
	best   plan
	found  bool
	plans  int    // number of plans that were tried
	works  []plan // the plans for this request that can be carried out
}

// cheapest returns the cheapest plan for the first form of the job that has one. It costs
// less than under, unless that is nil. The board is not changed. last says that the last
// resort is allowed.
func (b *board) cheapest(k Kind, j *job, under *cost, last bool) (plan, bool, error) {
	for _, form := range j.forms {
		p, found, err := b.cheapestOf(k, form, all, under, last)
		if found || err != nil {
			return p, found, err
		}
	}
	return plan{}, false, nil
}

// cheapestOf is cheapest for one form.
func (b *board) cheapestOf(k Kind, form *job, within plan, under *cost, last bool) (plan, bool, error) {
	s := &search{board: b, within: within, under: under}
	for _, minimum := range b.minima(form) {
		s.request = newRequest(k, form, minimum)
		s.request.last = last
		if err := s.run(); err != nil {
			return plan{}, false, err
		}
	}
	return s.best, s.found, nil
}

// cheapestFor is cheapest for one request, without the last resort.
func (b *board) cheapestFor(r *request, within plan, under *cost) (plan, bool, error) {
	s := &search{board: b, request: newRequest(r.kind, r.job, r.minimum), within: within, under: under}
	err := s.run()
	return s.best, s.found, err
}

// least returns the smallest amount that the plan's evictions free beyond what is needed,
// with any moves. It returns false if the evictions are not allowed for any minimum of the
// form.
func (b *board) least(k Kind, p *plan) (int64, bool) {
	if p.evicted == 0 || p.request == nil {
		return 0, false
	}
	s := &search{board: b, within: plan{evicted: p.evicted, moved: ^uint64(0)}}
	for _, minimum := range b.minima(p.request.job) {
		same := plan{request: newRequest(k, p.request.job, minimum), evicted: p.evicted, cost: b.costOf(p.request.job, p.evicted, 0)}
		same.request.last = p.request.last
		s.request, s.works = same.request, nil
		if s.violation(&same, nil) == "" && s.move(same, b.members(s.movable(&same))) != nil {
			break
		}
	}
	return s.best.cost.beyond, s.found
}

// run tries all sets of evicted tasks, the cheapest first, each with all sets of tasks that
// move.
func (s *search) run() error {
	s.works = nil
	evictable := s.evictable()
	if hopeless, err := s.cannotFit(evictable, s.movable(&plan{})); hopeless || err != nil {
		return err
	}
	sets, err := s.evictions(evictable)
	if err != nil {
		return err
	}
	for i := range sets {
		p := &sets[i]
		if s.allowance(p.cost) < 0 {
			continue
		}
		if !s.freesEnough(p.evicted) || s.violation(p, nil) != "" {
			continue
		}
		movable := s.movable(p)
		if movable != 0 {
			if hopeless, err := s.cannotFit(p.evicted, movable); hopeless {
				continue
			} else if err != nil {
				return err
			}
		}
		if err := s.move(*p, s.members(movable)); err != nil {
			return err
		}
	}
	return nil
}

// allowance returns how much a plan with this cost may free beyond what is needed to be the
// best one. It is negative if it cannot be.
func (s *search) allowance(c cost) int64 {
	most := unbounded
	if s.under != nil {
		most = c.below(*s.under)
	}
	if s.found {
		most = min(most, c.below(s.best.cost))
	}
	return most
}

// evictable returns the tasks that a plan might evict.
func (s *search) evictable() (set uint64) {
	for _, j := range s.jobs {
		if own := s.bound(j); own != 0 && !s.cannotEvict(s.request, j) && s.protection(s.request, s.members(own)[0]) == "" {
			set |= own & s.within.evicted
		}
	}
	return set
}

// evictions returns all sets of evicted tasks after which every gang has its minimum or no
// tasks, the cheapest first.
func (s *search) evictions(evictable uint64) ([]plan, error) {
	sets := []uint64{0}
	for _, j := range s.jobs {
		own := s.bound(j)
		parts := []uint64{0}
		for part := own & evictable; part != 0; part = (part - 1) & own & evictable {
			if part == own || s.makesMinimum(j, own&^part) {
				parts = append(parts, part)
			}
		}
		if len(sets)*len(parts) > maxPlans {
			return nil, errTooLarge
		}
		grown := make([]uint64, 0, len(sets)*len(parts))
		for _, set := range sets {
			for _, part := range parts {
				grown = append(grown, set|part)
			}
		}
		sets = grown
	}
	out := make([]plan, len(sets))
	for i, set := range sets {
		out[i] = plan{request: s.request, evicted: set, cost: s.costOf(s.job, set, 0)}
	}
	slices.SortFunc(out, func(a, b plan) int {
		return cmp.Or(a.cost.compare(b.cost), cmp.Compare(bits.Reverse64(b.evicted), bits.Reverse64(a.evicted)))
	})
	return out, nil
}

// movable returns the tasks that might move in addition to the evictions of the plan.
func (s *search) movable(p *plan) (set uint64) {
	if !s.kind.has(Consolidate) {
		return 0
	}
	for _, t := range s.tasks {
		if !s.isPlaced(t) || t.bit()&(p.evicted|^s.within.moved) != 0 || s.protection(s.request, t) != "" {
			continue
		}
		if s.jointViolation(&plan{request: s.request, evicted: p.evicted, moved: t.bit()}) == "" { // several of them together may not be allowed to
			set |= t.bit()
		}
	}
	return set
}

// freesEnough reports whether the sums of free room without the evicted tasks are as large
// as the request of the minimum.
func (s *search) freesEnough(evicted uint64) bool {
	free := s.free()
	for _, t := range s.members(evicted) {
		free = free.plus(t.asks, +1)
	}
	return s.asks.within(free)
}

// cannotFit reports whether the minimum would not fit even without all tasks that may move.
func (s *search) cannotFit(evicted, movable uint64) (bool, error) {
	seats := s.evict(evicted | movable)
	defer s.restore(evicted|movable, seats)
	ok, err := s.fits(s.minimum, false)
	return !ok, err
}

// move tries the plan with every set of tasks that move, the smallest first.
func (s *search) move(p plan, movable []*task) error {
	for size := range len(movable) + 1 {
		p.cost.moved = size
		if s.allowance(p.cost) < 0 {
			return nil
		}
		if err := s.choose(p, movable, size); err != nil {
			return err
		}
	}
	return nil
}

// choose tries the plan with every choice of the given number of further tasks.
func (s *search) choose(p plan, movable []*task, more int) error {
	if more == 0 {
		return s.try(p)
	}
	for i, t := range movable {
		if len(movable)-i < more {
			return nil
		}
		with := p
		with.moved |= t.bit()
		if err := s.choose(with, movable[i+1:], more-1); err != nil {
			return err
		}
	}
	return nil
}

// try looks for the placement with which the plan costs least.
func (s *search) try(p plan) error {
	if s.plans++; s.plans > maxPlans {
		return errTooLarge
	}
	if p.moved != 0 && s.jointViolation(&p) != "" {
		return nil
	}
	if slices.ContainsFunc(s.works, func(o plan) bool { return o.evicted&^p.evicted == 0 && o.moved&^p.moved == 0 }) {
		return nil // a victim is not needed
	}
	if _, ok, err := s.placePlan(&p, unbounded); !ok || err != nil {
		return err
	}
	s.works = append(s.works, p)
	for {
		most := s.allowance(p.cost)
		if most < 0 {
			return nil
		}
		spent, ok, err := s.placePlan(&p, most)
		if !ok || err != nil {
			return err
		}
		s.best, s.found = p, true
		if s.best.cost.beyond = spent; spent == 0 {
			return nil
		}
	}
}

// evict removes the tasks from their locations, which it returns in order.
func (b *board) evict(set uint64) []location {
	var seats []location
	for _, t := range b.members(set) {
		seats = append(seats, b.remove(t))
	}
	return seats
}

func (b *board) restore(set uint64, seats []location) {
	for i, t := range b.members(set) {
		b.place(t, seats[i])
	}
}

// placePlan looks for a placement of the minimum and of the tasks that move, without the
// victims, which frees at most the given amount beyond what is needed. It returns the
// amount. The board is not changed.
func (b *board) placePlan(p *plan, most int64) (int64, bool, error) {
	b.flow, b.most = b.flows(p.evicted, p.moved), most
	seats := b.evict(p.victims())
	for i, t := range b.members(p.victims()) {
		if p.moved&t.bit() != 0 {
			b.from[t.index] = seats[i]
		}
	}
	ok, err := b.fits(append(b.members(p.moved), p.request.minimum...), false)
	for _, t := range b.members(p.moved) {
		b.from[t.index] = location{node: -1}
	}
	b.restore(p.victims(), seats)
	b.flow = nil
	return b.spent, ok, err
}
