package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Subgroups may be in others, and of those in one place so many may be needed and the
// rest surplus. A gang then has a choice: which subgroups its minimum is made of.
// They are chosen before anything is placed, and where one finds no room, another
// takes its place. The exact search needs no choice: it looks for any.

// chosen says which subgroups make the minimum of the outer one, or of the job for 0:
// those that have their minimum already, and as many more as are needed, those first
// of which something is placed. Nil where too few are left that are not excluded.
func chosen(alt *cluster.Alternative, members []int, excluded []bool, outer int) []bool {
	stands, able := alt.Standing(members), alt.Standing(possible(alt))
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
			case stands[i]:
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

// compareBegun orders subgroups: those of which something is placed come first.
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

// membersThat counts the tasks of each subgroup of which something is true.
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

// wants reports whether tasks of the subgroup are placed: those of the minimum, and
// of surplus subgroups those that have their own.
func (g *gang) wants(sub int) bool { return sub == 0 || g.wanted == nil || g.wanted[sub-1] }

// withOtherSubgroups is the gang with other subgroups: without the one that found no room, or the
// first around it that another can take the place of; nil where there is none.
func (g *gang) withOtherSubgroups() *gang {
	before := placedMembers(g.alt)
	stood := g.alt.Standing(before)
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

// extend places surplus subgroups, each with its minimum or not at all.
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
			g.stmt.hold(g.alt.Tasks[0].Job, mark) // it starts as a whole
		}
	}
}

// copy is the gang for a try that may be taken back.
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

// started says which subgroups run with their minimum.
func started(alt *cluster.Alternative) []bool {
	return alt.Standing(membersThat(alt, func(t *cluster.Task) bool { return t.Runs() || t.Status == cluster.Succeeded }))
}

// startsInPart reports whether a subgroup has its minimum with tasks that wait for their
// room, while one of those that are to start now is in it: it starts as a whole.
func startsInPart(alt *cluster.Alternative, starts []*cluster.Task) bool {
	if !alt.Nested() {
		return false
	}
	runs, stands := started(alt), alt.Standing(placedMembers(alt))
	return slices.ContainsFunc(starts, func(t *cluster.Task) bool {
		return t.Subgroup > 0 && t.Runs() && stands[t.Subgroup-1] && !runs[t.Subgroup-1]
	})
}
