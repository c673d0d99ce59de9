package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Subgroups may contain other subgroups. A job or a subgroup may need only some of the
// subgroups that it contains; the rest are surplus. The subgroups that make up the minimum are
// chosen before any task is placed. If one of them has no room, another is chosen instead.
// The exact search does not choose: it accepts any subgroups that make up the minimum.

// chosen returns which subgroups make up the minimum of the subgroup outer, or of the job if
// outer is 0: those that have their own minimum already, and as many others as are needed.
// Subgroups with placed tasks are preferred. It returns nil if too few subgroups are left that
// are not excluded.
func chosen(alt *cluster.Alternative, members []int, excluded []bool, outer int) []bool {
	met, able := alt.SubgroupsMet(members), alt.SubgroupsMet(possible(alt))
	out := make([]bool, len(members))
	if outer > 0 {
		if !able[outer-1] {
			return nil
		}
		out[outer-1] = true
	}
	for ; outer <= len(out); outer++ {
		if outer > 0 && !out[outer-1] {
			continue
		}
		short := alt.Needed(outer)
		var others []int
		for i := range out {
			switch {
			case alt.Subgroups[i].Parent != outer:
			case met[i]:
				out[i] = true
				short--
			case able[i] && (excluded == nil || !excluded[i]):
				others = append(others, i)
			}
		}
		if short > len(others) {
			return nil
		}
		slices.SortStableFunc(others, func(a, b int) int { return compareBegun(alt, members, a+1, b+1) })
		for _, i := range others[:max(0, short)] {
			out[i] = true
		}
	}
	return out
}

// compareBegun orders subgroups with placed tasks before subgroups without.
func compareBegun(alt *cluster.Alternative, members []int, a, b int) int {
	placed := func(sub int) bool {
		for i, n := range members {
			if n > 0 && alt.In(i+1, sub) {
				return true
			}
		}
		return false
	}
	return trueFirst(placed(a), placed(b))
}

// membersThat counts the tasks of each subgroup for which is returns true.
func membersThat(alt *cluster.Alternative, is func(*cluster.Task) bool) []int {
	out := make([]int, len(alt.Subgroups))
	for _, t := range alt.Tasks {
		if t.Subgroup > 0 && is(t) {
			out[t.Subgroup-1]++
		}
	}
	return out
}

// possible counts the tasks of each subgroup that have not failed.
func possible(alt *cluster.Alternative) []int {
	return membersThat(alt, func(t *cluster.Task) bool { return t.Status != cluster.Failed })
}

// placedMembers counts the tasks of each subgroup that are placed, or succeeded.
func placedMembers(alt *cluster.Alternative) []int {
	return membersThat(alt, func(t *cluster.Task) bool { return t.Placed() || t.Status == cluster.Succeeded })
}

// wants reports whether tasks of the subgroup are to be placed: the subgroup is part of the
// minimum, or it is a surplus subgroup that has its own minimum.
func (g *gang) wants(sub int) bool { return sub == 0 || g.wanted == nil || g.wanted[sub-1] }

// withOtherSubgroups returns the gang with other subgroups for its minimum: without the subgroup
// that has no room or, if that cannot be replaced, without one that contains it. It returns nil
// if none of these can be replaced.
func (g *gang) withOtherSubgroups() *gang {
	before := placedMembers(g.alt)
	stood := g.alt.SubgroupsMet(before)
	for _, f := range g.failed {
		for sub := f.Task.Subgroup; sub > 0; sub = g.alt.Subgroups[sub-1].Parent {
			if !g.wanted[sub-1] || stood[sub-1] {
				continue
			}
			excluded := make([]bool, len(g.wanted))
			copy(excluded, g.excluded)
			excluded[sub-1] = true
			if wanted := chosen(g.alt, before, excluded, 0); wanted != nil {
				next := g.placer.gang(g.alt, g.in)
				next.wanted, next.excluded = wanted, excluded
				return next
			}
		}
	}
	return nil
}

// extend places surplus subgroups, each with its minimum or not at all, until the given number
// of tasks is placed.
func (g *gang) extend(tasks int) {
	left := len(g.left)
	for i := range g.wanted {
		if left-len(g.left) >= tasks {
			return
		}
		parent := g.alt.Subgroups[i].Parent
		if g.wanted[i] || !g.wants(parent) || g.placer.fault.err != nil {
			continue
		}
		inside := chosen(g.alt, g.members, nil, i+1)
		if inside == nil {
			continue
		}
		next, mark := g.copy(), g.stmt.Checkpoint()
		for k, wanted := range inside {
			next.wanted[k] = next.wanted[k] || wanted
		}
		if a := next.minimum(); a != nil {
			g.stmt.Rollback(mark)
			g.failed = append(g.failed[:len(g.failed):len(g.failed)], a)
			continue
		}
		if *g = *next; !started(g.alt)[i] {
			g.stmt.hold(g.alt.Tasks[0].Job, mark) // its tasks start together
		}
	}
}

// copy returns a copy of the gang for an attempt that may be rolled back.
func (g *gang) copy() *gang {
	next := *g
	next.members, next.wanted = slices.Clone(g.members), slices.Clone(g.wanted)
	next.failed = slices.Clip(g.failed)
	next.job.full = slices.Clone(g.job.full)
	next.subs = slices.Clone(g.subs)
	for i := range next.subs {
		next.subs[i].full = slices.Clone(next.subs[i].full)
	}
	return &next
}

// started returns which subgroups have their minimum with tasks that run or succeeded.
func started(alt *cluster.Alternative) []bool {
	return alt.SubgroupsMet(membersThat(alt, func(t *cluster.Task) bool { return t.Runs() || t.Status == cluster.Succeeded }))
}

// startsInPart reports whether one of the tasks that are to start now is in a subgroup that
// has its minimum only together with tasks that still wait for their room. Such a subgroup
// must wait, because its tasks start together.
func startsInPart(alt *cluster.Alternative, starts []*cluster.Task) bool {
	if !alt.Nested() {
		return false
	}
	runs, met := started(alt), alt.SubgroupsMet(placedMembers(alt))
	return slices.ContainsFunc(starts, func(t *cluster.Task) bool {
		return t.Subgroup > 0 && t.Runs() && met[t.Subgroup-1] && !runs[t.Subgroup-1]
	})
}
