package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// AddWholeFilter registers a task-form filter for tasks of jobs that request whole nodes. It is
// like Hooks.AddTaskFilter, but the answer must depend on nothing except the shape of the task,
// the WholeNodes of its alternative, the node, and the capacities and labels of the nodes of its
// group. The engine then keeps which nodes of a group pass, and calls the filter only for nodes
// that have changed when it judges the group again.
//
// Combining: as AddTaskFilter.
func AddWholeFilter(h *Hooks, matters func(*cluster.Task, *cluster.Job) bool, fn TaskFilter) {
	k := add(h, &h.taskFilters, fn, fn == nil)
	k.whole, k.tasks = true, matters
}

// maxPassing bounds memory: the nodes that pass are kept for so many combinations of a shape, a
// request and a group. The one that was used least recently is dropped.
const maxPassing = 32

// passingKey is what the answers of the filters for the nodes of a group depend on, apart from
// the nodes.
type passingKey struct {
	shape *cluster.Shape
	whole cluster.WholeNodes // without Only
	group cluster.GroupKey
}

// passing is the nodes of a group that pass the filters for one request.
type passing struct {
	now, ever []*cluster.Node // in the order of names; see passingNodes
	version   uint64          // the version of State that it is up to date with
	epoch     uint64          // index.epoch
	lastUsed  uint64          // the value of index.clock at its last use
}

// passes reports whether a node passes the filters now, and whether it would if no other task held
// anything.
type passes func(*cluster.Node) (now, ever bool)

// passingNodes returns the nodes of the group that pass the filters now, and those that would pass
// if no other task held anything. The lists are valid until the next call.
func (p *placer) passingNodes(t *cluster.Task, g *cluster.Group) (now, ever []*cluster.Node) {
	f := p.finder
	ask := f.verdicts(t)
	filters, _, _ := f.taskHooks(t)
	judge := func(n *cluster.Node) (now, ever bool) {
		rejected, transient := ask(n)
		if rejected && !transient {
			return false, false
		}
		r := f.rejectTask(filters, t, n)
		return !rejected && r == nil, (r == nil || r.Cure.Transient()) && (!rejected || f.onlyHeld(t, n))
	}
	whole := t.Job.Alternatives[t.Alternative].Whole
	if f.search == Scan || whole == nil || slices.ContainsFunc(filters, func(h *hook[TaskFilter]) bool { return !h.whole }) {
		q := &passing{}
		q.build(g, judge)
		return q.now, q.ever
	}
	key := passingKey{t.Shape, *whole, g.Key}
	key.whole.Only = nil
	q := f.index.passing(key, g, judge)
	if f.search == Twin {
		again := &passing{}
		if again.build(g, judge); !slices.Equal(again.now, q.now) || !slices.Equal(again.ever, q.ever) {
			f.fault.fail("engine", "the nodes of group %s that pass for task %s are not those that were kept; a filter that AddWholeFilter registered reads something that it must not", g.Key, t.ID)
		}
	}
	return q.now, q.ever
}

// build judges all nodes of the group.
func (q *passing) build(g *cluster.Group, judge passes) {
	q.now, q.ever = q.now[:0], q.ever[:0]
	for _, n := range g.Nodes {
		now, ever := judge(n)
		if now {
			q.now = append(q.now, n)
		}
		if ever {
			q.ever = append(q.ever, n)
		}
	}
}

// passing returns the nodes of the group that pass. It judges those that changed since the last
// call, and all nodes if the spec of one has changed.
func (x *index) passing(key passingKey, g *cluster.Group, judge passes) *passing {
	q := x.kept[key]
	if q == nil {
		q = &passing{}
		if x.kept == nil {
			x.kept = map[passingKey]*passing{}
		}
		x.dropPassing()
		x.kept[key] = q
	}
	x.clock++
	q.lastUsed = x.clock
	if q.epoch != x.epoch || !x.update(q, g, judge) {
		q.build(g, judge)
	}
	q.epoch, q.version = x.epoch, x.view.Version()
	if x.fault.err != nil {
		q.epoch = 0 // answers of a session that failed are not remembered
	}
	return q
}

// dropPassing makes room for one entry of kept.
func (x *index) dropPassing() {
	if len(x.kept) < maxPassing {
		return
	}
	var oldest passingKey
	least := x.clock + 1
	for key, q := range x.kept {
		if q.lastUsed < least {
			oldest, least = key, q.lastUsed
		}
	}
	delete(x.kept, oldest)
}

// update judges the nodes of the group that changed. It reports false, and leaves the lists
// incomplete, if all nodes must be judged.
func (x *index) update(q *passing, g *cluster.Group, judge passes) bool {
	recent := x.view.Recent()
	if recent.NodesAdded() > q.version {
		return false
	}
	changed, respecified := x.changed[:0], false
	recent.Nodes(q.version, func(slot int) {
		switch n := x.view.At(slot); {
		case n == nil || n.SpecVersion() > q.version:
			respecified = true
		case n.Group() == g:
			changed = append(changed, n)
		}
	})
	if x.changed = changed; respecified || len(changed) > len(g.Nodes)/manyChanges {
		return false
	}
	for _, n := range changed {
		now, ever := judge(n)
		q.now, q.ever = x.include(q.now, n, now), x.include(q.ever, n, ever)
	}
	return true
}

// include makes the list have the node or not. The list is in the order of names.
func (x *index) include(list []*cluster.Node, n *cluster.Node, has bool) []*cluster.Node {
	ranks := x.view.Recent().Ranks()
	at, had := slices.BinarySearchFunc(list, n, func(a, b *cluster.Node) int { return cmp.Compare(ranks[a.Slot()], ranks[b.Slot()]) })
	switch {
	case has && !had:
		return slices.Insert(list, at, n)
	case had && !has:
		return slices.Delete(list, at, at+1)
	}
	return list
}
