package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// minima are the sets of tasks that room is looked for: those that the minimum
// needs in the order they are placed and, where others would do too, the smallest.
func (s *Session) minima(alt *cluster.Alternative) [][]*cluster.Task {
	first := s.lacking(alt, s.CompareTasks)
	if len(first) == 0 {
		return nil
	}
	out := [][]*cluster.Task{first}
	smallest := s.lacking(alt, func(a, b *cluster.Task) int {
		return cmp.Or(cmp.Compare(s.devicesOf(a.Shape).Value, s.devicesOf(b.Shape).Value), cmp.Compare(a.Shape.Resources.Of(cluster.CPU), b.Shape.Resources.Of(cluster.CPU)))
	})
	for _, t := range smallest {
		if !slices.ContainsFunc(first, func(o *cluster.Task) bool { return o.Shape == t.Shape }) {
			return append(out, smallest)
		}
	}
	return out
}

// Lacking are the pending tasks that the minimum needs, in the order they are placed.
func (s *Session) Lacking(alt *cluster.Alternative) []*cluster.Task {
	return s.lacking(alt, s.CompareTasks)
}

// lacking are the same, in the order given.
func (s *Session) lacking(alt *cluster.Alternative, order func(a, b *cluster.Task) int) []*cluster.Task {
	var pending []*cluster.Task
	short, parts := alt.Min, make([]int, len(alt.Subgroups))
	for i := range parts {
		parts[i] = alt.Subgroups[i].Min
	}
	for _, t := range alt.Tasks {
		switch {
		case t.Status == cluster.Pending:
			pending = append(pending, t)
		case t.Placed() && alt.Counts(t):
			short--
			if t.Subgroup > 0 {
				parts[t.Subgroup-1]--
			}
		}
	}
	slices.SortStableFunc(pending, order)
	if s.growing != nil && len(pending) > 0 && pending[0].Job == s.growing {
		return pending[:1]
	}
	needed := make([]bool, len(pending))
	for i, t := range pending {
		if t.Subgroup > 0 && parts[t.Subgroup-1] > 0 {
			parts[t.Subgroup-1]--
			short--
			needed[i] = true
		}
	}
	var out []*cluster.Task
	for i, t := range pending {
		if !needed[i] && short > 0 {
			short--
			needed[i] = true
		}
		if needed[i] {
			out = append(out, t)
		}
	}
	return out
}
