package oracle

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// placement records where every task is placed, and keeps the free room of nodes and the
// use of queues up to date. Searches change it in place and undo their changes.
type placement struct {
	objects *objects
	room    *freeRoom
	queues  *queueUse
	at      []location // by task
	barred  taskSet    // evicted tasks, which must not be placed again in this session
}

// newPlacement returns the placement of State as it is before a session.
func newPlacement(o *objects) *placement {
	p := &placement{objects: o, room: newFreeRoom(o.nodes), queues: newQueueUse(o), at: make([]location, len(o.tasks))}
	for _, t := range o.tasks {
		p.at[t.index].node = -1
		if n := slices.Index(o.nodes, t.task.Node); n >= 0 {
			p.place(t, location{node: n, claims: t.task.Claims, bound: t.task.Runs()})
		}
	}
	return p
}

func (p *placement) place(t *task, at location) {
	p.at[t.index] = at
	p.room.take(t, at, +1)
	p.queues.charge(t.form, at.held(t), +1)
}

// remove removes the task from its location, which it returns.
func (p *placement) remove(t *task) location {
	at := p.at[t.index]
	p.queues.charge(t.form, at.held(t), -1)
	p.room.take(t, at, -1)
	p.at[t.index] = location{node: -1}
	return at
}

// removeSet removes the tasks from their locations, which it returns in the order of the
// tasks. restore undoes it.
func (p *placement) removeSet(set taskSet) []location {
	var locations []location
	for _, t := range p.objects.members(set) {
		locations = append(locations, p.remove(t))
	}
	return locations
}

// restore places the tasks at the locations that removeSet returned.
func (p *placement) restore(set taskSet, locations []location) {
	for i, t := range p.objects.members(set) {
		p.place(t, locations[i])
	}
}

func (p *placement) isPlaced(t *task) bool { return p.at[t.index].node >= 0 }

// isPending reports whether the task is not placed and may be placed.
func (p *placement) isPending(t *task) bool { return !p.isPlaced(t) && !p.barred.has(t) }

func (p *placement) isBound(t *task) bool { return p.at[t.index].bound }

// bound returns the tasks of the form that are bound.
func (p *placement) bound(f *form) (set taskSet) {
	for _, t := range f.tasks {
		if p.isBound(t) {
			set |= t.bit()
		}
	}
	return set
}

// held returns what the task holds where it is placed.
func (p *placement) held(t *task) vector { return p.at[t.index].held(t) }

// inDomain reports whether the topology of the task's form allows the node, given the nodes
// of the other tasks of the form. If the form requests whole nodes, each of its tasks must
// be on a node of its own, and all these nodes in one group.
func (p *placement) inDomain(t *task, n int) bool {
	node, alt := p.objects.nodes[n], t.form.alt
	level := alt.Topology.Required
	if level != "" && node.Labels[level] == "" {
		return false
	}
	for _, o := range t.form.tasks {
		if o == t || !p.isPlaced(o) {
			continue
		}
		other := p.objects.nodes[p.at[o.index].node]
		if level != "" && other.Labels[level] != node.Labels[level] {
			return false
		}
		if alt.Whole != nil && (other == node || other.Group() != node.Group()) {
			return false
		}
	}
	return true
}

// running counts the bound tasks that the budget covers.
func (p *placement) running(budget *cluster.Budget) int {
	n := 0
	for _, t := range p.objects.tasks {
		if p.isBound(t) && budget.Covers(t.form.job) {
			n++
		}
	}
	return n
}

// hasMinimum reports whether the placed tasks of the form make its minimum.
func (p *placement) hasMinimum(f *form) bool { return f.hasEnough(p.isPlaced) }

// hasAnyMinimum reports whether the minimum of one of the job's forms is placed.
func (p *placement) hasAnyMinimum(f *form) bool { return slices.ContainsFunc(f.forms, p.hasMinimum) }

// minima returns the smallest sets of pending tasks that make the minimum of the form
// together with its placed tasks. Of sets that differ only in which of several equal tasks
// they contain, it returns one. If the minimum is already placed, each set is one surplus
// task.
func (p *placement) minima(f *form) [][]*task {
	var out [][]*task
	if p.hasMinimum(f) {
		for _, t := range f.tasks {
			if p.isPending(t) {
				out = append(out, []*task{t})
			}
		}
		return out
	}
	var chosen []*task
	var from func(i int)
	from = func(i int) {
		if f.hasEnough(func(t *task) bool { return p.isPlaced(t) || slices.Contains(chosen, t) }) {
			if !p.hasUnneeded(f, chosen) {
				out = append(out, slices.Clone(chosen))
			}
			return
		}
		for k := i; k < len(f.tasks); k++ {
			t := f.tasks[k]
			if !p.isPending(t) || slices.ContainsFunc(f.tasks[i:k], func(o *task) bool { return p.isPending(o) && o.isEqual(t) }) {
				continue
			}
			chosen = append(chosen, t)
			from(k + 1)
			chosen = chosen[:len(chosen)-1]
		}
	}
	from(0)
	return out
}

// hasUnneeded reports whether the placed and chosen tasks make the minimum without one of
// the chosen tasks.
func (p *placement) hasUnneeded(f *form, chosen []*task) bool {
	for _, out := range chosen {
		if f.hasEnough(func(t *task) bool { return t != out && (p.isPlaced(t) || slices.Contains(chosen, t)) }) {
			return true
		}
	}
	return false
}
