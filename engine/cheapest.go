package engine

import (
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// few are the tasks that might go, where they and the nodes are so few that all
// plans can be compared.
func (r *room) few() []rival {
	if len(r.State.Nodes()) > maxSmall {
		return nil
	}
	return r.line(maxUnsure)
}

// cheapest tries plans from the cheapest up and returns the first that works, if
// it is cheaper than the one that is known already.
func (r *room) cheapest(all []rival, known []*Victim) []*Victim {
	type option struct {
		mask uint32
		cost cost
	}
	var options []option
	limit := costOf(r.State, known)
	for mask := uint32(1); mask < 1<<len(all); mask++ {
		o := option{mask: mask}
		for m := mask; m != 0; m &= m - 1 {
			o.cost.add(r.State, all[bits.TrailingZeros32(m)].task)
		}
		if known == nil || o.cost.compare(&limit) < 0 {
			options = append(options, o)
		}
	}
	slices.SortStableFunc(options, func(a, b option) int { return a.cost.compare(&b.cost) })
	for _, o := range options {
		if r.tries >= maxTries || r.err != nil {
			return nil
		}
		var go_ []*cluster.Task
		for m := o.mask; m != 0; m &= m - 1 {
			go_ = append(go_, all[bits.TrailingZeros32(m)].task)
		}
		if plan := r.order(go_); plan != nil && r.works(plan) {
			return plan
		}
	}
	return nil
}

// order makes victims of the tasks so that each may go once those before it are
// gone; nil where they cannot go, or not without others.
func (r *room) order(leaving []*cluster.Task) []*Victim {
	mark := r.stmt.Checkpoint()
	defer r.stmt.Rollback(mark)
	var plan []*Victim
	for progress := true; progress; {
		progress = false
		for _, t := range leaving {
			if t.Status != cluster.Bound {
				continue
			}
			v := VictimOf(t)
			if slices.ContainsFunc(v.Tasks, func(o *cluster.Task) bool { return !slices.Contains(leaving, o) }) {
				return nil
			}
			if r.evict(v) {
				plan = append(plan, v)
				progress = true
			}
		}
	}
	for _, t := range leaving {
		if t.Status == cluster.Bound {
			return nil
		}
	}
	return plan
}
