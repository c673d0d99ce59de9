package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// A subgroup that others are in has its topology for all of them: its domain is
// found first, with room for what all their minima need, and theirs lie inside it.

// outermost is the widest subgroup around the subgroup, or itself, whose topology is
// not settled yet; 0 where all are.
func (g *gang) outermost(sub int) int {
	out := 0
	for ; sub > 0; sub = g.alt.Subgroups[sub-1].Parent {
		if !g.alt.Subgroups[sub-1].Topology.None() && g.subs[sub-1].trail == nil {
			out = sub
		}
	}
	return out
}

// around is the part that the subgroup lies in: the first above it with a topology,
// or the job.
func (g *gang) around(sub int) *part {
	for sub = g.alt.Subgroups[sub-1].Parent; sub > 0; sub = g.alt.Subgroups[sub-1].Parent {
		if !g.alt.Subgroups[sub-1].Topology.None() {
			return &g.subs[sub-1]
		}
	}
	return &g.job
}

// fillGroup places what the minima of the subgroup and of those in it need, or one
// task where they have them.
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

// short is how many tasks the minima of the subgroup and of those in it lack.
func (g *gang) short(sub int) int {
	n := 0
	for i := range g.members {
		if g.alt.In(i+1, sub) {
			n += g.lacks(i)
		}
	}
	return n
}

// nextIn finds the next task of the subgroup, or of one in it, that its minimum needs;
// any where it needs none. -1 where there is none.
func (g *gang) nextIn(sub int) int {
	short := g.short(sub)
	return slices.IndexFunc(g.left, func(t *cluster.Task) bool {
		return t.Subgroup > 0 && g.alt.In(t.Subgroup, sub) && g.hopeful(t) && (short == 0 || g.lacks(t.Subgroup-1) > 0)
	})
}

// within reports whether as many tasks as are left, by subgroup, may make the minima.
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
	return x.gang.alt.Met(left)
}

// dangling reports whether the search has placed tasks of a subgroup that has not
// its minimum: they would run for nothing.
func (x *search) dangling() bool {
	if !x.gang.free {
		return false
	}
	stands := x.gang.alt.Standing(x.gang.members)
	for i, n := range x.gang.members {
		for sub := i + 1; n > x.began[i] && sub > 0; sub = x.gang.alt.Subgroups[sub-1].Parent {
			if !stands[sub-1] {
				return true
			}
		}
	}
	return false
}
