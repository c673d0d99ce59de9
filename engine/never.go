package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// never reports whether the minimum of a gang has no room even in an empty cluster. If so,
// waiting cannot help. The second result is set if the gang has too few domains.
func (e *explainer) never(alt *cluster.Alternative, t *cluster.Task, in *scope) (bool, *TooFewDomains) {
	if len(alt.Tasks) < 2 {
		return false, nil
	}
	need, room := leastOfShape(alt, t.Shape), e.capacityWhenEmpty(t, in)
	sum := 0
	for _, n := range e.finder.view.Nodes() {
		if sum >= need {
			break
		}
		sum += room(n)
	}
	if sum < need {
		return true, nil
	}
	most, level, by := e.apart(t.Job, e.finder.view.Nodes(), room)
	if by == nil {
		return false, nil
	}
	if most < need {
		return true, &TooFewDomains{level, need, most}
	}
	need = max(alt.Min, alt.LeastSum(func(sub int) int { return alt.Subgroups[sub-1].Min }))
	if most, level, _ = e.apart(t.Job, e.finder.view.Nodes(), e.capacityOfAnyShape(alt.Tasks, in)); most < need {
		return true, &TooFewDomains{level, need, most}
	}
	return false, nil
}

// capacityWhenEmpty returns a function that counts how many tasks of this shape a node
// would hold if no other job were on it. A node outside the scope, and a node that a filter
// rejects for a reason that waiting does not cure, counts only the tasks of the job that
// are on it already.
func (e *explainer) capacityWhenEmpty(t *cluster.Task, in *scope) func(*cluster.Node) int {
	ask := e.finder.verdicts(t)
	filters, _, _ := e.finder.taskHooks(t)
	possible := func(n *cluster.Node) bool {
		if !in.has(n) {
			return false
		}
		if rejected, transient := ask(n); rejected && !transient {
			return false
		}
		r := e.finder.rejectTask(filters, t, n)
		return r == nil || r.Cure.Transient()
	}
	return func(n *cluster.Node) int {
		if possible(n) {
			return n.Most(t.Shape)
		}
		placed := 0
		for _, o := range n.Tasks {
			if o.Job == t.Job && o.Shape == t.Shape && o.Status != cluster.Releasing {
				placed++
			}
		}
		return placed
	}
}

// capacityOfAnyShape adds up capacityWhenEmpty over all shapes of the tasks.
func (e *explainer) capacityOfAnyShape(tasks []*cluster.Task, in *scope) func(*cluster.Node) int {
	var rooms []func(*cluster.Node) int
	for _, t := range oneOfEachShape(tasks) {
		rooms = append(rooms, e.capacityWhenEmpty(t, in))
	}
	return func(n *cluster.Node) int {
		sum := 0
		for _, room := range rooms {
			sum += room(n)
		}
		return sum
	}
}

// oneOfEachShape returns the first task of each shape.
func oneOfEachShape(tasks []*cluster.Task) []*cluster.Task {
	var out []*cluster.Task
	for _, t := range tasks {
		if !slices.ContainsFunc(out, func(o *cluster.Task) bool { return o.Shape == t.Shape }) {
			out = append(out, t)
		}
	}
	return out
}

// alone reports whether only the gang's own tasks keep it from being placed: no task of
// another job is on a node that may take it, and it does not wait for anything else, such
// as a node that is not ready. A task-form filter may look at any node, so if one applies
// to the task, no task of another job may be on any node.
func (e *explainer) alone(alt *cluster.Alternative, t *cluster.Task) bool {
	filters, _, _ := e.finder.taskHooks(t)
	far := e.finder.keeper.farSighted(filters)
	if far && alt.Whole != nil {
		return false
	}
	ask := e.finder.verdicts(t)
	counts := func(n *cluster.Node) bool {
		rejected, transient := ask(n)
		return !rejected || transient
	}
	for _, n := range e.finder.view.Nodes() {
		others := slices.ContainsFunc(n.Tasks, func(o *cluster.Task) bool { return o.Job != t.Job })
		if others && (far || counts(n)) {
			return false
		}
	}
	return !slices.ContainsFunc(e.finder.view.Nodes(), func(n *cluster.Node) bool {
		return counts(n) && e.mayTakeLater(filters, t, n)
	})
}

// mayTakeLater reports whether the node may take the task later although no task has to end for
// that: foreign processes use its devices, or waiting alone cures the rejection.
func (e *explainer) mayTakeLater(filters []*hook[TaskFilter], t *cluster.Task, n *cluster.Node) bool {
	if slices.ContainsFunc(n.Devices, func(d cluster.Device) bool { return d.Foreign > 0 }) {
		return true
	}
	r, _ := e.finder.rejectAt(filters, t, n)
	return r != nil && r.Cure.unheld()
}

// leastOfShape returns how many tasks of the shape are in any minimum of the alternative:
// the minimum less all tasks of other shapes. If the minima of the subgroups add up to
// more, that sum counts.
func leastOfShape(alt *cluster.Alternative, shape *cluster.Shape) int {
	least := alt.Min
	for _, t := range alt.Tasks {
		if t.Shape != shape {
			least--
		}
	}
	return max(least, alt.LeastSum(func(sub int) int {
		part := alt.Subgroups[sub-1].Min
		for _, t := range alt.Tasks {
			if t.Subgroup == sub && t.Shape != shape {
				part--
			}
		}
		return max(0, part)
	}))
}
