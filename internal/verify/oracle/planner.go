package oracle

// planner finds the cheapest legal plan for a job. None of its methods changes the
// placement.
type planner struct {
	objects    *objects
	placement  *placement
	rules      *planRules
	placements *placementSearch
	costs      *planCosts
}

// newPlanner returns a planner for tasks that are placed as p records, after a session did
// what h records.
func newPlanner(o *objects, p *placement, h *history) *planner {
	costs := &planCosts{objects: o, placement: p}
	return &planner{
		objects:    o,
		placement:  p,
		rules:      &planRules{objects: o, placement: p, history: h},
		placements: newPlacementSearch(o, p, costs),
		costs:      costs,
	}
}

// newSearch returns a search for plans that cost less than under, unless under is nil. They
// evict and move only tasks that within evicts and moves.
func (p *planner) newSearch(within plan, under *cost) *search {
	return &search{
		objects:    p.objects,
		rules:      p.rules,
		placements: p.placements,
		candidates: &candidates{objects: p.objects, placement: p.placement, rules: p.rules, costs: p.costs},
		within:     within,
		best:       best{under: under},
	}
}

// cheapest returns the cheapest plan for the first form of the job that has one, and whether
// there is one. The plan costs less than under, unless under is nil. lastResort says that
// rules 4 and 5 are allowed.
func (p *planner) cheapest(k Kind, f *form, under *cost, lastResort bool) (plan, bool, error) {
	for _, form := range f.forms {
		best, found, err := p.cheapestOf(k, form, anyPlan, under, lastResort)
		if found || err != nil {
			return best, found, err
		}
	}
	return plan{}, false, nil
}

// cheapestOf is cheapest for one form. The plan evicts and moves only tasks that within
// evicts and moves.
func (p *planner) cheapestOf(k Kind, f *form, within plan, under *cost, lastResort bool) (plan, bool, error) {
	s := p.newSearch(within, under)
	for _, minimum := range p.placement.minima(f) {
		if err := s.run(newRequest(k, f, minimum, lastResort)); err != nil {
			return plan{}, false, err
		}
	}
	return s.best.plan, s.best.found, nil
}

// cheapestFor is cheapest for the minimum of the request, without the last resort.
func (p *planner) cheapestFor(r *request) (plan, bool, error) {
	s := p.newSearch(anyPlan, nil)
	err := s.run(newRequest(r.kind, r.form, r.minimum, false))
	return s.best.plan, s.best.found, err
}

// leastBeyond returns the smallest amount that the evictions of the plan free beyond what is
// needed, with any moves and for any minimum of the form. It returns false if the evictions
// are not allowed for any minimum.
func (p *planner) leastBeyond(k Kind, of *plan) (int64, bool) {
	if of.evicted == 0 || of.request == nil {
		return 0, false
	}
	f := of.request.form
	s := p.newSearch(plan{evicted: of.evicted, moved: allTasks}, nil)
	for _, minimum := range p.placement.minima(f) {
		same := plan{request: newRequest(k, f, minimum, of.request.lastResort), evicted: of.evicted, cost: p.costs.of(f, of.evicted, 0)}
		if s.runWith(same) != nil {
			break
		}
	}
	return s.best.plan.cost.beyond, s.best.found
}
