package oracle

import "slices"

// maxPlans is how many plans a search may try. Cases that exceed it are only counted.
const maxPlans = 20_000

// search looks for the cheapest plan by trying all of them, for one request after the other.
type search struct {
	objects    *objects
	rules      *planRules
	placements *placementSearch
	candidates *candidates

	within plan // only tasks that it evicts may be evicted, and only tasks that it moves may move
	best   best // of all requests so far
	tried  int  // how many plans were tried
}

// best is the cheapest plan that a search has found.
type best struct {
	under *cost // the plan must cost less; nil means any cost
	plan  plan
	found bool
}

// allowance returns how much a plan with this cost may free beyond what is needed so that it
// is better than the best one. It returns a negative number if the plan cannot be better.
func (b *best) allowance(c cost) int64 {
	most := unbounded
	if b.under != nil {
		most = c.below(*b.under)
	}
	if b.found {
		most = min(most, c.below(b.plan.cost))
	}
	return most
}

// run tries all sets of evicted tasks, the cheapest first, each with all sets of tasks that
// move.
func (s *search) run(r *request) error {
	evictable := s.candidates.evictable(r) & s.within.evicted
	if fits, err := s.placements.fitsWithout(r.minimum, evictable|s.movable(r, 0)); !fits || err != nil {
		return err
	}
	plans, err := s.candidates.plans(r, evictable)
	if err != nil {
		return err
	}
	var feasible feasiblePlans
	for i := range plans {
		p := &plans[i]
		if s.best.allowance(p.cost) < 0 || !s.placements.freesEnough(r.amounts, p.evicted) || s.rules.violation(p, nil) != "" {
			continue
		}
		movable := s.movable(r, p.evicted)
		if movable != 0 {
			// If this is too large to try, the plan is left out, as if nothing fitted.
			if fits, _ := s.placements.fitsWithout(r.minimum, p.evicted|movable); !fits {
				continue
			}
		}
		if err := s.tryMoves(*p, s.objects.members(movable), &feasible); err != nil {
			return err
		}
	}
	return nil
}

// runWith tries the plan with all sets of tasks that move.
func (s *search) runWith(p plan) error {
	if s.rules.violation(&p, nil) != "" {
		return nil
	}
	return s.tryMoves(p, s.objects.members(s.movable(p.request, p.evicted)), &feasiblePlans{})
}

// movable returns the tasks that might move in addition to the evictions.
func (s *search) movable(r *request, evicted taskSet) taskSet {
	return s.candidates.movable(r, evicted) & s.within.moved
}

// feasiblePlans has the plans for one request after which the minimum fits. A plan that
// contains one of them has a victim that is not needed.
type feasiblePlans []plan

// tryMoves tries the plan with every set of tasks that move, the smallest first.
func (s *search) tryMoves(p plan, movable []*task, feasible *feasiblePlans) error {
	for size := range len(movable) + 1 {
		p.cost.moved = size
		if s.best.allowance(p.cost) < 0 {
			return nil
		}
		if err := s.addMoves(p, movable, size, feasible); err != nil {
			return err
		}
	}
	return nil
}

// addMoves tries the plan with every choice of the given number of further tasks that move.
func (s *search) addMoves(p plan, movable []*task, more int, feasible *feasiblePlans) error {
	if more == 0 {
		return s.try(p, feasible)
	}
	for i, t := range movable {
		if len(movable)-i < more {
			return nil
		}
		with := p
		with.moved |= t.bit()
		if err := s.addMoves(with, movable[i+1:], more-1, feasible); err != nil {
			return err
		}
	}
	return nil
}

// try looks for the placement with which the plan costs least. The plan becomes the best one
// if it is better than the best one so far.
func (s *search) try(p plan, feasible *feasiblePlans) error {
	if s.tried++; s.tried > maxPlans {
		return errTooLarge
	}
	if p.moved != 0 && s.rules.jointViolation(&p) != "" {
		return nil
	}
	if slices.ContainsFunc(*feasible, func(o plan) bool { return p.contains(&o) }) {
		return nil
	}
	if _, ok, err := s.placements.fitPlan(&p, unbounded); !ok || err != nil {
		return err
	}
	*feasible = append(*feasible, p)
	for {
		most := s.best.allowance(p.cost)
		if most < 0 {
			return nil
		}
		beyond, ok, err := s.placements.fitPlan(&p, most)
		if !ok || err != nil {
			return err
		}
		s.best.plan, s.best.found = p, true
		if s.best.plan.cost.beyond = beyond; beyond == 0 {
			return nil
		}
	}
}
