package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// The topology of a subgroup that contains other subgroups holds for all of them. Its domain
// is chosen first, with room for all their minima together, and their domains lie inside it.

// outermost returns the outermost subgroup that has a topology but no chosen domain yet, among
// the subgroup itself and those that contain it. It returns 0 if there is none.
func (g *gang) outermost(sub int) int {
	out := 0
	for ; sub > 0; sub = g.alt.Subgroups[sub-1].Parent {
		if !g.alt.Subgroups[sub-1].Topology.None() && g.subs[sub-1].scopeList == nil {
			out = sub
		}
	}
	return out
}

// around returns the placement of the innermost subgroup that contains the subgroup and has
// a topology, or that of the job.
func (g *gang) around(sub int) *placementPart {
	for sub = g.alt.Subgroups[sub-1].Parent; sub > 0; sub = g.alt.Subgroups[sub-1].Parent {
		if !g.alt.Subgroups[sub-1].Topology.None() {
			return &g.subs[sub-1]
		}
	}
	return &g.job
}

// fillGroup places what the minima of the subgroup and of the subgroups in it need. If they
// have their minima, it places one task.
func (g *gang) fillGroup(sub int) *Attempt {
	for first := true; first || g.short(sub) > 0; first = false {
		i := g.nextIn(sub)
		for i >= 0 && !g.take(i) {
			i = g.nextIn(sub)
		}
		if i < 0 || g.placer.fault.err != nil {
			return g.miss()
		}
	}
	return nil
}

// short returns how many tasks the minima of the subgroup and of the subgroups in it lack.
func (g *gang) short(sub int) int {
	n := 0
	for i := range g.members {
		if g.alt.In(i+1, sub) {
			n += g.lacks(i)
		}
	}
	return n
}

// nextIn returns the index in g.left of the next task of the subgroup, or of a subgroup in
// it, that a minimum needs. If no minimum needs a task, it returns the index of any task of
// these subgroups. It returns -1 if there is none.
func (g *gang) nextIn(sub int) int {
	short := g.short(sub)
	return slices.IndexFunc(g.left, func(t *cluster.Task) bool {
		return t.Subgroup > 0 && g.alt.In(t.Subgroup, sub) && g.hopeful(t) && (short == 0 || g.lacks(t.Subgroup-1) > 0)
	})
}

// within reports whether the minima can be reached if at most left[i] more tasks of
// subgroup i+1 are placed.
func (x *search) within(left []int) bool {
	if !x.gang.free {
		for sub := range left {
			if left[sub] < x.gang.lacks(sub) {
				return false
			}
		}
		return true
	}
	for sub := range left {
		left[sub] += x.gang.members[sub]
	}
	return x.gang.alt.MinimumMet(left)
}

// dangling reports whether the search has placed tasks of a subgroup that does not reach
// its minimum. Such tasks could not do any work.
func (x *search) dangling() bool {
	if !x.gang.free {
		return false
	}
	met := x.gang.alt.SubgroupsMet(x.gang.members)
	for i, n := range x.gang.members {
		for sub := i + 1; n > x.began[i] && sub > 0; sub = x.gang.alt.Subgroups[sub-1].Parent {
			if !met[sub-1] {
				return true
			}
		}
	}
	return false
}
