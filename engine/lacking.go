package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// shortage says which tasks jobs lack.
type shortage struct {
	hooks    *Hooks
	accounts *accounts
	growing  *cluster.Job // whose turn is for a task beyond its minimum
}

func (s *Session) shortage(growing *cluster.Job) shortage {
	return shortage{s.Hooks, s.accounts, growing}
}

// minima are the sets of tasks that room is looked for: those that the minimum
// needs in the order they are placed and, where others would do too, the smallest.
func (l shortage) minima(alt *cluster.Alternative) [][]*cluster.Task {
	first := l.lackingBy(alt, l.compare)
	if len(first) == 0 {
		return nil
	}
	out := append([][]*cluster.Task{first}, l.otherSubgroups(alt)...)
	smallest := l.lackingBy(alt, func(a, b *cluster.Task) int {
		return cmp.Or(cmp.Compare(l.accounts.devicesOf(a.Shape).Value, l.accounts.devicesOf(b.Shape).Value), cmp.Compare(a.Shape.Resources.Of(cluster.CPU), b.Shape.Resources.Of(cluster.CPU)))
	})
	for _, t := range smallest {
		if !slices.ContainsFunc(first, func(o *cluster.Task) bool { return o.Shape == t.Shape }) {
			return append(out, smallest)
		}
	}
	return out
}

// of are the pending tasks that the minimum needs, in the order they are placed.
func (l shortage) lacking(alt *cluster.Alternative) []*cluster.Task {
	return l.lackingBy(alt, l.compare)
}

// sorted are the same, in the order given.
func (l shortage) lackingBy(alt *cluster.Alternative, order func(a, b *cluster.Task) int) []*cluster.Task {
	return l.lackingWith(alt, l.neededSubgroups(alt, nil), order)
}

// made are those where the minimum is made of the subgroups that are wanted. Of a
// job that grows, it is the next task beyond the minimum.
func (l shortage) lackingWith(alt *cluster.Alternative, wanted []bool, order func(a, b *cluster.Task) int) []*cluster.Task {
	var pending []*cluster.Task
	short, parts := alt.Min, make([]int, len(alt.Subgroups))
	for i := range parts {
		if wanted == nil || wanted[i] {
			parts[i] = alt.Subgroups[i].Min
		}
	}
	for _, t := range alt.Tasks {
		counts := (t.Placed() || t.Status == cluster.Succeeded) && alt.Counts(t)
		switch {
		case t.Subgroup > 0 && wanted != nil && !wanted[t.Subgroup-1]:
			if counts {
				short--
			}
		case t.Status == cluster.Pending:
			pending = append(pending, t)
		case counts:
			short--
			if t.Subgroup > 0 {
				parts[t.Subgroup-1]--
			}
		}
	}
	slices.SortStableFunc(pending, order)
	if l.growing != nil && len(pending) > 0 && pending[0].Job == l.growing {
		return pending[:1]
	}
	return needed(pending, short, parts)
}

// needed are those of the pending tasks that the job and its subgroups are short of.
func needed(pending []*cluster.Task, short int, parts []int) []*cluster.Task {
	takes := make([]bool, len(pending))
	for i, t := range pending {
		if t.Subgroup > 0 && parts[t.Subgroup-1] > 0 {
			parts[t.Subgroup-1]--
			short--
			takes[i] = true
		}
	}
	var out []*cluster.Task
	for i, t := range pending {
		if !takes[i] && short > 0 {
			short--
			takes[i] = true
		}
		if takes[i] {
			out = append(out, t)
		}
	}
	return out
}

// compare orders tasks of a job: by the hooks, then as they were written.
func (l shortage) compare(a, b *cluster.Task) int {
	for _, h := range l.hooks.taskOrders {
		if c := h.fn(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// lacks are the tasks that the job's turn is for, in the first form that would be
// tried: those that its minimum needs or, where it has its minimum, the next one.
func (l shortage) lacks(job *cluster.Job) []*cluster.Task {
	for _, forms := range choices(job) {
		if tasks := forms[0].Tasks; len(tasks) == 1 && tasks[0].Status == cluster.Pending {
			return tasks // most jobs are such, and this is asked often
		}
		if lacks := l.lacking(&forms[0]); len(lacks) > 0 {
			return lacks
		}
		if next := l.nextPending(&forms[0]); next != nil {
			return []*cluster.Task{next}
		}
		break
	}
	return nil
}

// next is the first pending task in the order they are placed; nil: there is none.
func (l shortage) nextPending(alt *cluster.Alternative) *cluster.Task {
	var next *cluster.Task
	for _, t := range alt.Tasks {
		if t.Status == cluster.Pending && (next == nil || l.compare(t, next) < 0) {
			next = t
		}
	}
	return next
}

// freeFor reports whether as much is free, wherever it is, as some form of the
// job lacks of devices for its minimum: if not, moving others is of no use.
func (l shortage) freeFor(job *cluster.Job) bool {
	for i := range job.Alternatives {
		if job.Chosen >= 0 && i != job.Chosen || job.Chosen < 0 && job.Alternatives[i].Running {
			continue
		}
		if lacks := l.lacking(&job.Alternatives[i]); len(lacks) > 0 && l.accounts.free() >= l.accounts.devicesLacking(lacks) {
			return true
		}
	}
	return false
}

// otherSubgroups are the tasks that the minimum lacks where one of the subgroups that
// it is made of is left to others.
func (l shortage) otherSubgroups(alt *cluster.Alternative) [][]*cluster.Task {
	wanted := l.neededSubgroups(alt, nil)
	if wanted == nil {
		return nil
	}
	var out [][]*cluster.Task
	stands := alt.Standing(placedMembers(alt))
	for i := range wanted {
		if !wanted[i] || stands[i] || len(out) == maxChoices {
			continue
		}
		excluded := make([]bool, len(wanted))
		excluded[i] = true
		other := l.neededSubgroups(alt, excluded)
		if other == nil {
			continue
		}
		if lacks := l.lackingWith(alt, other, l.compare); len(lacks) > 0 {
			out = append(out, lacks)
		}
	}
	return out
}

// wanted says which subgroups make the minimum, without those that are excluded; nil: all.
func (l shortage) neededSubgroups(alt *cluster.Alternative, excluded []bool) []bool {
	if !alt.Nested() {
		return nil
	}
	return chosen(alt, placedMembers(alt), excluded, 0)
}

// mostChoices is for how many other choices of subgroups room is looked for.
const maxChoices = 8
