package oracle

import (
	"cmp"
	"errors"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// maxSteps is how many steps the search for placements may take in one turn. Cases that
// exceed it are only counted.
const maxSteps = 400_000

// errTooLarge says that the limit of steps was reached before everything was tried.
var errTooLarge = errors.New("too large to try everything")

// placementSearch looks for placements of tasks by trying all of them.
type placementSearch struct {
	objects   *objects
	placement *placement
	costs     *planCosts
	steps     int    // how many steps it may still take
	trial     *trial // the plan for which tasks are placed; nil if they are placed into free room
}

// trial is a plan after its victims were removed, while its tasks are placed.
type trial struct {
	changes nodeChanges
	origins map[*task]location // where the tasks that move were before
	most    int64              // how much the plan may free beyond what is needed
	freed   int64              // how much the placement that was found frees beyond what is needed
}

func newPlacementSearch(o *objects, p *placement, c *planCosts) *placementSearch {
	return &placementSearch{objects: o, placement: p, costs: c, steps: maxSteps}
}

// reset allows as many steps as one turn may take.
func (s *placementSearch) reset() { s.steps = maxSteps }

// minimumFits reports whether a minimum of some form of the job fits into the free room.
func (s *placementSearch) minimumFits(f *form) (bool, error) {
	for _, form := range f.forms {
		for _, minimum := range s.placement.minima(form) {
			if found, err := s.fits(minimum, false); found || err != nil {
				return found, err
			}
		}
	}
	return false, nil
}

// freesEnough reports whether the sums of what is free without the evicted tasks are as large
// as the amounts. If they are not, no placement has to be tried.
func (s *placementSearch) freesEnough(amounts vector, evicted taskSet) bool {
	return amounts.isWithin(s.placement.room.total().plus(sum(s.objects.members(evicted)), +1))
}

// fitsWithout reports whether the tasks can be placed together if other tasks are removed. The
// placement is not changed.
func (s *placementSearch) fitsWithout(tasks []*task, removed taskSet) (bool, error) {
	locations := s.placement.removeSet(removed)
	defer s.placement.restore(removed, locations)
	return s.fits(tasks, false)
}

// fitPlan looks for a placement of the minimum and of the tasks that move, without the
// victims, that frees at most the given amount beyond what is needed. It returns how much the
// placement that it finds frees beyond what is needed, and whether it finds one. The placement
// is not changed.
func (s *placementSearch) fitPlan(p *plan, most int64) (int64, bool, error) {
	t := &trial{changes: s.costs.changes(p.evicted, p.moved), origins: map[*task]location{}, most: most}
	locations := s.placement.removeSet(p.victims())
	for i, v := range s.objects.members(p.victims()) {
		if p.moved.has(v) {
			t.origins[v] = locations[i]
		}
	}
	s.trial = t
	ok, err := s.fits(append(s.objects.members(p.moved), p.request.minimum...), false)
	s.trial = nil
	s.placement.restore(p.victims(), locations)
	return t.freed, ok, err
}

// fits reports whether all the tasks can be placed together, by trying every node and every
// choice of devices for every task. If keep is set and they can be placed, they stay placed.
// Otherwise the placement is not changed.
func (s *placementSearch) fits(tasks []*task, keep bool) (bool, error) {
	for _, t := range tasks {
		// What queues hold does not depend on the nodes, so it is checked first.
		if s.placement.queues.violation(t.form, sumOf(tasks, t.form.leaf())) != "" {
			return false, nil
		}
	}
	if !sum(tasks).isWithin(s.placement.room.total()) {
		return false, nil
	}
	// The largest tasks are first, so that impossible requests are found early. Equal tasks
	// must be adjacent.
	order := slices.Clone(tasks)
	slices.SortStableFunc(order, func(a, b *task) int {
		return cmp.Or(cmp.Compare(b.amounts[gpu], a.amounts[gpu]), cmp.Compare(b.amounts[cpu], a.amounts[cpu]), cmp.Compare(a.form.index, b.form.index))
	})
	return s.placeFrom(order, 0, keep)
}

// placeFrom tries to place the tasks from index i on. Of placements that differ only in which
// of several equal tasks, nodes or devices they use, it tries one: equal tasks are placed on
// nodes in order, and of equal nodes and devices the first is used.
func (s *placementSearch) placeFrom(tasks []*task, i int, keep bool) (bool, error) {
	if s.trial != nil && s.trial.changes.beyond()-sum(tasks[i:])[gpu] > s.trial.most {
		return false, nil
	}
	if i == len(tasks) {
		if s.trial != nil {
			s.trial.freed = s.trial.changes.beyond()
		}
		return true, nil
	}
	t := tasks[i]
	if s.placement.queues.violation(t.form, t.amounts) != "" {
		return false, nil
	}
	first := 0
	if i > 0 && t.isEqual(tasks[i-1]) {
		first = s.placement.at[tasks[i-1].index].node
	}
	for n := first; n < len(s.objects.nodes); n++ {
		if s.hasTwin(first, n) || !s.placement.inDomain(t, n) {
			continue
		}
		if found, err := s.placeOn(n, tasks, i, keep); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// placeOn tries every choice of devices of the node for task i, and for each of them all
// placements of the tasks after it.
func (s *placementSearch) placeOn(n int, tasks []*task, i int, keep bool) (found bool, err error) {
	t := tasks[i]
	s.placement.room.choices(t, n, func(claims []cluster.Claim) bool {
		if s.isOrigin(t, n, claims) {
			return true
		}
		if s.steps--; s.steps < 0 {
			err = errTooLarge
			return false
		}
		s.placement.place(t, location{node: n, claims: claims})
		s.recordChange(t, n, +1)
		found, err = s.placeFrom(tasks, i+1, keep)
		s.recordChange(t, n, -1)
		if !found || !keep {
			s.placement.remove(t)
		}
		return !found && err == nil
	})
	return found, err
}

// hasTwin reports whether one of the nodes from first up to, but without, n is equal to n, so
// that it was tried instead of n.
func (s *placementSearch) hasTwin(first, n int) bool {
	for o := first; o < n; o++ {
		if s.placement.room.areTwins(o, n) && (s.trial == nil || s.trial.changes.areTwins(o, n)) {
			return true
		}
	}
	return false
}

// isOrigin reports whether the task moves and the location is its former one, to which it
// must not move.
func (s *placementSearch) isOrigin(t *task, n int, claims []cluster.Claim) bool {
	if s.trial == nil {
		return false
	}
	origin, moves := s.trial.origins[t]
	return moves && origin.node == n && slices.Equal(origin.claims, claims)
}

// recordChange records in the trial that the task is placed on the node or, if sign is -1,
// removed from it.
func (s *placementSearch) recordChange(t *task, n int, sign int64) {
	if s.trial != nil {
		s.trial.changes.place(t, n, sign)
	}
}
