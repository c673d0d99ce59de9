package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// shortage finds out which tasks jobs lack.
type shortage struct {
	hooks    *Hooks
	accounts *accounts
	growing  *cluster.Job // the job that has its turn for a surplus task; nil if there is none
}

func (s *Session) shortage(growing *cluster.Job) shortage {
	return shortage{s.Hooks, &s.accounts, growing}
}

// minima returns the lists of tasks for which room may be made. The first has the tasks that
// the minimum needs, in the order in which they are placed. The others make up the minimum
// of other subgroups, or of the smallest tasks if these have other shapes.
func (l shortage) minima(alt *cluster.Alternative) [][]*cluster.Task {
	if len(alt.Tasks) == 1 && len(alt.Subgroups) == 0 && alt.Min == 1 && alt.Tasks[0].Status == cluster.Pending {
		return [][]*cluster.Task{alt.Tasks} // a shortcut for most jobs
	}
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

// lacking returns the pending tasks that the minimum needs, in the order in which they are
// placed.
func (l shortage) lacking(alt *cluster.Alternative) []*cluster.Task {
	return l.lackingBy(alt, l.compare)
}

// lackingBy is like lacking, with tasks chosen in the given order.
func (l shortage) lackingBy(alt *cluster.Alternative, order func(a, b *cluster.Task) int) []*cluster.Task {
	return l.lackingWith(alt, l.neededSubgroups(alt, nil), order)
}

// lackingWith is like lackingBy, with a minimum that is made up of the wanted subgroups; nil
// means all. For the growing job, it returns the next surplus task.
func (l shortage) lackingWith(alt *cluster.Alternative, wanted []bool, order func(a, b *cluster.Task) int) []*cluster.Task {
	var pending []*cluster.Task
	short, subShort := alt.Min, make([]int, len(alt.Subgroups)) // how many tasks the job and its subgroups lack
	for i := range subShort {
		if wanted == nil || wanted[i] {
			subShort[i] = alt.Subgroups[i].Min
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
				subShort[t.Subgroup-1]--
			}
		}
	}
	slices.SortStableFunc(pending, order)
	if l.growing != nil && len(pending) > 0 && pending[0].Job == l.growing {
		return pending[:1]
	}
	return needed(pending, short, subShort)
}

// needed returns those of the pending tasks that the minima need. The job lacks short tasks,
// and subShort says how many of these its subgroups lack.
func needed(pending []*cluster.Task, short int, subShort []int) []*cluster.Task {
	isNeeded := make([]bool, len(pending))
	for i, t := range pending {
		if t.Subgroup > 0 && subShort[t.Subgroup-1] > 0 {
			subShort[t.Subgroup-1]--
			short--
			isNeeded[i] = true
		}
	}
	var out []*cluster.Task
	for i, t := range pending {
		if !isNeeded[i] && short > 0 {
			short--
			isNeeded[i] = true
		}
		if isNeeded[i] {
			out = append(out, t)
		}
	}
	return out
}

// compare implements Session.CompareTasks.
func (l shortage) compare(a, b *cluster.Task) int {
	for i := range l.hooks.taskOrders {
		h := &l.hooks.taskOrders[i]
		if !h.profiles.decide(a.Job) {
			continue
		}
		if c := h.fn(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// lacks implements Session.Lacks.
func (l shortage) lacks(job *cluster.Job) []*cluster.Task {
	for _, forms := range choices(job) {
		if tasks := forms[0].Tasks; len(tasks) == 1 && tasks[0].Status == cluster.Pending {
			return tasks // a shortcut for most jobs, because this is called often
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

// nextPending returns the pending task that is placed first, or nil if none is pending.
func (l shortage) nextPending(alt *cluster.Alternative) *cluster.Task {
	var next *cluster.Task
	for _, t := range alt.Tasks {
		if t.Status == cluster.Pending && (next == nil || l.compare(t, next) < 0) {
			next = t
		}
	}
	return next
}

// freeFor reports whether the cluster as a whole has as much of devices free as the minimum
// of at least one alternative of the job lacks. If not, moving tasks cannot help.
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

// otherSubgroups returns lists of tasks that the minimum lacks if one of the subgroups that
// make it up is replaced by another.
func (l shortage) otherSubgroups(alt *cluster.Alternative) [][]*cluster.Task {
	wanted := l.neededSubgroups(alt, nil)
	if wanted == nil {
		return nil
	}
	var out [][]*cluster.Task
	met := alt.SubgroupsMet(placedMembers(alt))
	for i := range wanted {
		if !wanted[i] || met[i] || len(out) == maxChoices {
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

// neededSubgroups returns which subgroups make up the minimum, without the excluded ones. It
// returns nil if all subgroups are needed.
func (l shortage) neededSubgroups(alt *cluster.Alternative, excluded []bool) []bool {
	if !alt.Nested() {
		return nil
	}
	return chosen(alt, placedMembers(alt), excluded, 0)
}

// maxChoices is for how many other choices of subgroups room may be made.
const maxChoices = 8
