package oracle

import (
	"cmp"
	"math/bits"
	"slices"
)

// maxPlans is how many plans a search may try. Cases that exceed it are only counted.
const maxPlans = 20_000

// search looks for the cheapest plan by trying all of them, for one request after the other.
type search struct {
	planner *planner
	within  plan  // only its victims may be evicted and moved
	under   *cost // the plan must cost less; nil means any cost
	best    plan  // the cheapest plan of all requests so far
	found   bool  // whether there is a best plan
	plans   int   // how many plans were tried

	request  *request
	feasible []plan // the plans for this request after which the minimum fits
}

// run tries all sets of evicted tasks, the cheapest first, each with all sets of tasks that
// move.
func (s *search) run(r *request) error {
	s.request, s.feasible = r, nil
	evictable := s.evictable()
	if hopeless, err := s.cannotFit(evictable | s.movable(0)); hopeless || err != nil {
		return err
	}
	sets, err := s.evictions(evictable)
	if err != nil {
		return err
	}
	for i := range sets {
		p := &sets[i]
		if s.allowance(p.cost) < 0 || !s.freesEnough(p.evicted) || s.planner.rules.violation(p, nil) != "" {
			continue
		}
		movable := s.movable(p.evicted)
		if movable != 0 {
			if hopeless, err := s.cannotFit(p.evicted | movable); hopeless {
				continue
			} else if err != nil {
				return err
			}
		}
		if err := s.tryMoves(*p, s.planner.objects.members(movable)); err != nil {
			return err
		}
	}
	return nil
}

// allowance returns how much a plan with this cost may free beyond what is needed so that it
// is the best one. It returns a negative number if it cannot be the best one.
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
func (s *search) evictable() (set taskSet) {
	rules := s.planner.rules
	for _, f := range s.planner.objects.jobs {
		if own := s.planner.placement.bound(f); own != 0 && !rules.cannotEvict(s.request, f) && rules.protection(s.request, s.planner.objects.members(own)[0]) == "" {
			set |= own & s.within.evicted
		}
	}
	return set
}

// evictions returns all sets of evicted tasks after which every gang has its minimum or no
// tasks, the cheapest first.
func (s *search) evictions(evictable taskSet) ([]plan, error) {
	sets := []taskSet{0}
	for _, f := range s.planner.objects.jobs {
		own := s.planner.placement.bound(f)
		subsets := []taskSet{0}
		for set := own & evictable; set != 0; set = (set - 1) & own & evictable {
			if set == own || f.isEnough(own&^set) {
				subsets = append(subsets, set)
			}
		}
		if len(sets)*len(subsets) > maxPlans {
			return nil, errTooLarge
		}
		combined := make([]taskSet, 0, len(sets)*len(subsets))
		for _, set := range sets {
			for _, subset := range subsets {
				combined = append(combined, set|subset)
			}
		}
		sets = combined
	}
	out := make([]plan, len(sets))
	for i, set := range sets {
		out[i] = plan{request: s.request, evicted: set, cost: s.planner.costs.of(s.request.form, set, 0)}
	}
	reversed := func(s taskSet) uint64 { return bits.Reverse64(uint64(s)) }
	slices.SortFunc(out, func(a, b plan) int {
		return cmp.Or(a.cost.compare(b.cost), cmp.Compare(reversed(b.evicted), reversed(a.evicted)))
	})
	return out, nil
}

// movable returns the tasks of which each alone might move in addition to the evictions.
// Several of them together may still be forbidden to move.
func (s *search) movable(evicted taskSet) (set taskSet) {
	if !s.request.kind.has(Consolidate) {
		return 0
	}
	for _, t := range s.planner.objects.tasks {
		if !s.planner.placement.isPlaced(t) || evicted.has(t) || !s.within.moved.has(t) || s.planner.rules.protection(s.request, t) != "" {
			continue
		}
		if s.planner.rules.jointViolation(&plan{request: s.request, evicted: evicted, moved: t.bit()}) == "" {
			set |= t.bit()
		}
	}
	return set
}

// freesEnough reports whether the sums of what is free without the evicted tasks are as large
// as the request of the minimum.
func (s *search) freesEnough(evicted taskSet) bool {
	free := s.planner.placement.room.total().plus(sum(s.planner.objects.members(evicted)), +1)
	return s.request.amounts.isWithin(free)
}

// cannotFit reports whether the minimum does not fit even if all these tasks are removed.
func (s *search) cannotFit(removed taskSet) (bool, error) {
	locations := s.planner.placement.removeSet(removed)
	defer s.planner.placement.restore(removed, locations)
	ok, err := s.planner.placements.fits(s.request.minimum, false)
	return !ok, err
}

// tryMoves tries the plan with every set of tasks that move, the smallest first.
func (s *search) tryMoves(p plan, movable []*task) error {
	for size := range len(movable) + 1 {
		p.cost.moved = size
		if s.allowance(p.cost) < 0 {
			return nil
		}
		if err := s.addMoves(p, movable, size); err != nil {
			return err
		}
	}
	return nil
}

// addMoves tries the plan with every choice of the given number of further tasks that move.
func (s *search) addMoves(p plan, movable []*task, more int) error {
	if more == 0 {
		return s.try(p)
	}
	for i, t := range movable {
		if len(movable)-i < more {
			return nil
		}
		with := p
		with.moved |= t.bit()
		if err := s.addMoves(with, movable[i+1:], more-1); err != nil {
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
	if p.moved != 0 && s.planner.rules.jointViolation(&p) != "" {
		return nil
	}
	if slices.ContainsFunc(s.feasible, func(o plan) bool { return p.contains(&o) }) {
		return nil // a victim is not needed
	}
	if _, ok, err := s.fitPlan(&p, unbounded); !ok || err != nil {
		return err
	}
	s.feasible = append(s.feasible, p)
	for {
		most := s.allowance(p.cost)
		if most < 0 {
			return nil
		}
		beyond, ok, err := s.fitPlan(&p, most)
		if !ok || err != nil {
			return err
		}
		s.best, s.found = p, true
		if s.best.cost.beyond = beyond; beyond == 0 {
			return nil
		}
	}
}

// fitPlan looks for a placement with which the plan frees at most the given amount beyond
// what is needed. It returns how much it frees beyond that.
func (s *search) fitPlan(p *plan, most int64) (int64, bool, error) {
	return s.planner.placements.fitPlan(p, s.planner.costs.changes(p.evicted, p.moved), most)
}
