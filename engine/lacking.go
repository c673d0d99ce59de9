package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// shortage says which tasks jobs lack.
type shortage struct {
	hooks    *hooks
	accounts *accounts
	growing  *cluster.Job // whose turn is for a task beyond its minimum
}

func (s *Session) shortage(growing *cluster.Job) shortage {
	return shortage{&s.hooks, s.accounts, growing}
}

// minima are the sets of tasks that room is looked for: those that the minimum
// needs in the order they are placed and, where others would do too, the smallest.
func (l *shortage) minima(alt *cluster.Alternative) [][]*cluster.Task {
	first := l.sorted(alt, l.compare)
	if len(first) == 0 {
		return nil
	}
	out := append([][]*cluster.Task{first}, l.otherSubgroups(alt)...)
	smallest := l.sorted(alt, func(a, b *cluster.Task) int {
		return cmp.Or(cmp.Compare(l.accounts.devicesOf(a.Shape).Value, l.accounts.devicesOf(b.Shape).Value), cmp.Compare(a.Shape.Resources.Of(cluster.CPU), b.Shape.Resources.Of(cluster.CPU)))
	})
	for _, t := range smallest {
		if !slices.ContainsFunc(first, func(o *cluster.Task) bool { return o.Shape == t.Shape }) {
			return append(out, smallest)
		}
	}
	return out
}

// Lacking are the pending tasks that the minimum needs, in the order they are placed.
func (l *shortage) of(alt *cluster.Alternative) []*cluster.Task {
	return l.sorted(alt, l.compare)
}

// lacking are the same, in the order given.
func (l *shortage) sorted(alt *cluster.Alternative, order func(a, b *cluster.Task) int) []*cluster.Task {
	return l.made(alt, l.wanted(alt, nil), order)
}

// lackingOf are those where the minimum is made of the subgroups that are wanted. Of a
// job that grows, it is the next task beyond the minimum.
func (l *shortage) made(alt *cluster.Alternative, wanted []bool, order func(a, b *cluster.Task) int) []*cluster.Task {
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
func (l *shortage) compare(a, b *cluster.Task) int {
	for _, h := range l.hooks.taskOrders {
		if c := h.fn(a, b); c != 0 {
			return c
		}
	}
	return 0
}
