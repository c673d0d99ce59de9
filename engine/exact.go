package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// The exact search is used for gangs that could not be placed task by task, although another
// arrangement may fit: for example, the leader was placed on the only node that is large
// enough for a worker, fractions of devices were chosen badly, or the first task was placed
// in a domain that is too small. The search tries arrangements, depth first, and stops at
// the first one that has room for the minimum.
//
// It is bounded by steps and not by time, so that every machine decides the same: examining
// a node is one step, and an allocation is allocationCost steps. It is not used if more than
// exactNodes nodes could take part, because it would run out of steps. All gangs of a
// session share sessionSteps.
const (
	exactSteps     = 100_000
	sessionSteps   = 10 * exactSteps
	allocationCost = 20 // at most 5,000 allocations for one gang
	exactNodes     = 64
)

// search is one exact search.
type search struct {
	gang     *gang
	in       *scope
	tasks    []searchTask
	shapes   []shapeCount
	steps    int                  // the steps that are left
	distinct cluster.Distinctions // the devices that tasks of the gang tell apart
	began    []int                // by subgroup: how many tasks were placed before the search
}

// searchTask is a task of the search.
type searchTask struct {
	task       *cluster.Task
	shapeIndex int             // the index of its shape in search.shapes
	nodes      []*cluster.Node // the nodes that may take it, best first
	equalTo    int             // the index of an earlier task that it is equal to; -1 if there is none
	nodeIndex  int             // the index in nodes of the node that it is on; -1 if it is left out
}

// shapeCount counts tasks of one shape.
type shapeCount struct {
	shape     *cluster.Shape
	mustPlace int // how many tasks of the shape must be placed
}

// exact searches for an arrangement of the minimum. If it finds one, it leaves the allocations
// in the statement and returns true. The caller must have rolled back its own attempts.
func (g *gang) exact() bool {
	if !g.mayFitOtherwise() {
		return false
	}
	if g.wanted != nil {
		g.wanted, g.free = nil, true
	}
	scopes := []*scope{g.in}
	if level := g.alt.Topology.Required; level != "" {
		scopes = scopes[:0]
		d := g.demand(0)
		for _, c := range g.required([]*scope{g.in}, level, d) {
			if c.fits >= d.need {
				scopes = append(scopes, c.scope)
			}
		}
	}
	steps := min(exactSteps, sessionSteps-*g.placer.searched)
	defer func(from int) { *g.placer.searched += from - max(0, steps) }(steps)
	for _, in := range scopes {
		x := &search{gang: g, in: in, steps: steps, began: slices.Clone(g.members)}
		if !x.prepare() {
			g.unsure = true
			continue
		}
		mark := g.stmt.Checkpoint()
		found := x.placeFrom(0) && g.placer.fault.err == nil
		moves := g.stmt.placedSince(mark)
		g.stmt.Rollback(mark)
		if steps = x.steps; found {
			return x.repeat(moves)
		}
		if steps <= 0 || g.placer.fault.err != nil {
			g.unsure = true
			break
		}
	}
	return false
}

// repeat makes the allocations of the search again, now with scores in their decisions.
func (x *search) repeat(moves []move) bool {
	for _, m := range moves {
		d := x.gang.placer.decision(x.gang.alt, m.task, m.node, x.in)
		d.Claims = m.claims
		if !x.gang.placer.allocate(m.task, d, m.node) {
			return false
		}
	}
	return true
}

// mayFitOtherwise reports whether another arrangement might fit although the first did not.
// Equal tasks either fit in any order or not at all if each of them takes only whole devices,
// a part of one device, or no device, and if they have no task-form filter of a plugin, subgroup or
// topology.
func (g *gang) mayFitOtherwise() bool {
	if len(g.left) < 2 || g.alt.Whole != nil {
		return false
	}
	if len(g.alt.Subgroups) > 0 || !g.alt.Topology.None() {
		return true
	}
	for _, t := range g.left {
		if t.Shape != g.left[0].Shape || t.Shape.ChoiceMatters() {
			return true
		}
		if filters, _, _ := g.placer.finder.taskHooks(t); g.placer.finder.keeper.farSighted(filters) {
			return true
		}
	}
	return false
}

// prepare lists the tasks and, for each, the nodes that may take it. It returns false if too
// many nodes take part.
func (x *search) prepare() bool {
	involved := map[*cluster.Node]bool{}
	byShape := map[*cluster.Shape][]*cluster.Node{}
	for i, t := range x.gang.left {
		nodes, known := byShape[t.Shape]
		if !known {
			if nodes = x.hosts(t); len(nodes) > exactNodes {
				return false
			}
			byShape[t.Shape] = nodes
			x.distinct.Named = append(x.distinct.Named, t.Shape.Need.Selected...)
			x.distinct.Links = x.distinct.Links || t.Shape.Need.SameLink
			for _, n := range nodes {
				involved[n] = true
			}
		}
		k := slices.IndexFunc(x.shapes, func(k shapeCount) bool { return k.shape == t.Shape })
		if k < 0 {
			k = len(x.shapes)
			x.shapes = append(x.shapes, shapeCount{shape: t.Shape})
		}
		equal := -1
		for o := i - 1; o >= 0 && equal < 0; o-- {
			if u := x.tasks[o].task; u.Shape == t.Shape && u.Role == t.Role && u.Subgroup == t.Subgroup {
				equal = o
			}
		}
		x.tasks = append(x.tasks, searchTask{task: t, shapeIndex: k, nodes: nodes, equalTo: equal})
	}
	return len(involved) <= exactNodes && x.gang.placer.fault.err == nil
}

// hosts returns the nodes that have room for the task and that no filter rejects permanently,
// in the order of their present scores, best first.
func (x *search) hosts(t *cluster.Task) []*cluster.Node {
	type host struct {
		node  *cluster.Node
		score int64
	}
	var hosts []host
	ask := x.gang.placer.finder.verdicts(t)
	for _, n := range x.gang.placer.finder.members(x.in) {
		if rejected, transient := ask(n); rejected && !transient || n.Room(t.Shape) == 0 {
			continue
		}
		h := host{n, -1} // a node that a filter rejects now has no score
		if x.gang.placer.finder.reject(t, n) == nil {
			h.score = x.gang.placer.finder.score(t, n).Total
		}
		if hosts = append(hosts, h); len(hosts) > exactNodes {
			break
		}
	}
	slices.SortStableFunc(hosts, func(a, b host) int { return cmp.Compare(b.score, a.score) })
	out := make([]*cluster.Node, len(hosts))
	for i := range hosts {
		out[i] = hosts[i].node
	}
	return out
}

// canReachMinimum reports whether placing the tasks from i on might still reach the minimum,
// by sums of room, which are much cheaper than the search.
func (x *search) canReachMinimum(i int) bool {
	left := make([]int, len(x.gang.members))
	for k := range x.shapes {
		x.shapes[k].mustPlace = 0
	}
	for _, t := range x.tasks[i:] {
		if t.task.Subgroup > 0 {
			left[t.task.Subgroup-1]++
		}
		x.shapes[t.shapeIndex].mustPlace++ // all of the shape; below, those that may be left out are subtracted
	}
	total := len(x.tasks) - i
	if total < x.gang.needs() {
		return false
	}
	if !x.within(left) {
		return false
	}
	spare := total - x.gang.needs() // how many tasks may be left out
	for k := range x.shapes {
		if x.shapes[k].mustPlace -= spare; x.shapes[k].mustPlace > 0 && !x.hasRoom(k, i) {
			return false
		}
	}
	return true
}

// hasRoom reports whether the nodes have room for as many tasks of the k-th shape as must be
// placed, by a sum over the nodes.
func (x *search) hasRoom(k, i int) bool {
	at := slices.IndexFunc(x.tasks[i:], func(t searchTask) bool { return t.shapeIndex == k })
	sum := 0
	for _, n := range x.tasks[i+at].nodes {
		x.steps--
		if sum += n.Room(x.shapes[k].shape); sum >= x.shapes[k].mustPlace {
			return true
		}
	}
	return false
}

// placeFrom places the tasks from i on, or leaves some of them out, until the minimum is
// placed. It returns false if that is not possible or if the steps are used up.
func (x *search) placeFrom(i int) bool {
	if x.gang.needs() == 0 && !x.dangling() {
		return true
	}
	if x.steps <= 0 || x.gang.placer.fault.err != nil || i == len(x.tasks) || !x.canReachMinimum(i) {
		return false
	}
	t := &x.tasks[i]
	first := 0
	if t.equalTo >= 0 {
		first = x.tasks[t.equalTo].nodeIndex // equal tasks are placed in the order of the nodes, so that no arrangement is tried twice
	}
	before := x.gang.placer.finder.before(t.task)
	if before != nil {
		x.gang.unsure = x.gang.unsure || before.Before.Cure.Transient()
	} else if first >= 0 {
		for t.nodeIndex = first; t.nodeIndex < len(t.nodes); t.nodeIndex++ {
			if x.placeOn(i, t.nodes[t.nodeIndex]) {
				return true
			}
			if x.steps <= 0 || x.gang.placer.fault.err != nil {
				return false
			}
		}
	}
	t.nodeIndex = -1
	return x.placeFrom(i + 1)
}

// placeOn tries the i-th task on the node, with every choice of devices, and then the tasks
// after it.
func (x *search) placeOn(i int, n *cluster.Node) bool {
	p, t := x.gang.placer, x.tasks[i].task
	if x.steps--; !x.inRequiredDomains(t, n) {
		return false
	}
	if r := p.finder.reject(t, n); r != nil {
		x.gang.unsure = x.gang.unsure || r.Cure.unheld() // something other than the end of a task may cure this
		return false
	}
	for claims := range n.Choices(t.Shape, p.finder.deviceScore(t.Shape, n), x.distinct) {
		if x.steps -= allocationCost; x.steps <= 0 {
			return false
		}
		mark := x.gang.stmt.Checkpoint()
		if !p.allocate(t, Decision{Node: n.Name, Claims: claims}, n) {
			return false
		}
		x.gang.count(t, +1)
		if x.placeFrom(i + 1) {
			return true
		}
		x.gang.count(t, -1)
		x.gang.stmt.Rollback(mark)
	}
	return false
}

// inRequiredDomains reports whether the node is in the same domain as the placed tasks, at
// each level that the topology of the job or of the task's subgroups requires.
func (x *search) inRequiredDomains(t *cluster.Task, n *cluster.Node) bool {
	inOne := func(level string, sub int) bool {
		if level == "" {
			return true
		}
		v, ok := n.Labels[level]
		return ok && !slices.ContainsFunc(x.gang.alt.Tasks, func(o *cluster.Task) bool {
			if !o.Placed() || sub > 0 && !x.gang.alt.In(o.Subgroup, sub) {
				return false
			}
			at, ok := o.At().Labels[level]
			return !ok || at != v
		})
	}
	if !inOne(x.gang.alt.Topology.Required, 0) {
		return false
	}
	for sub := t.Subgroup; sub > 0; sub = x.gang.alt.Subgroups[sub-1].Parent {
		if !inOne(x.gang.alt.Subgroups[sub-1].Topology.Required, sub) {
			return false
		}
	}
	return true
}
