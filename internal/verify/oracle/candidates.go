package oracle

import (
	"cmp"
	"math/bits"
	"slices"
)

// candidates lists what plans for a request might evict and move. It leaves out only what the
// rules forbid in any case, so that each plan must still be checked.
type candidates struct {
	objects   *objects
	placement *placement
	rules     *planRules
	costs     *planCosts
}

// evictable returns the tasks that a plan might evict.
func (c *candidates) evictable(r *request) (set taskSet) {
	for _, f := range c.objects.jobs {
		if own := c.placement.bound(f); own != 0 && !c.rules.cannotEvict(r, f) && c.rules.protection(r, c.objects.members(own)[0]) == "" {
			set |= own
		}
	}
	return set
}

// movable returns the tasks of which each alone might move in addition to the evictions.
// Several of them together may still be forbidden to move.
func (c *candidates) movable(r *request, evicted taskSet) (set taskSet) {
	if !r.kind.has(Consolidate) {
		return 0
	}
	for _, t := range c.objects.tasks {
		if !c.placement.isPlaced(t) || evicted.has(t) || c.rules.protection(r, t) != "" {
			continue
		}
		if c.rules.jointViolation(&plan{request: r, evicted: evicted, moved: t.bit()}) == "" {
			set |= t.bit()
		}
	}
	return set
}

// plans returns all plans that only evict, that evict only evictable tasks, and after which
// every gang has its minimum or no tasks. The cheapest is first.
func (c *candidates) plans(r *request, evictable taskSet) ([]plan, error) {
	sets := []taskSet{0}
	for _, f := range c.objects.jobs {
		own := c.placement.bound(f)
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
		out[i] = plan{request: r, evicted: set, cost: c.costs.of(r.form, set, 0)}
	}
	reversed := func(s taskSet) uint64 { return bits.Reverse64(uint64(s)) } // of equal plans, the one with the first tasks is first
	slices.SortFunc(out, func(a, b plan) int {
		return cmp.Or(a.cost.compare(b.cost), cmp.Compare(reversed(b.evicted), reversed(a.evicted)))
	})
	return out, nil
}
