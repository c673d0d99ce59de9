package engine

import (
	"github.com/berth-project/berth/cluster"
)

// finder finds the best node for a task by filters and scores, with the index or with a scan
// of all nodes.
type finder struct {
	view   cluster.View
	hooks  *Hooks
	index  *index
	search Search
	fault  *fault
	spare  *spareMemory
	levels map[string][]*scope // the domains of the cluster, by label
	barred barred
	keeper keeper
	// only, if not nil, reports which nodes may be chosen. See Mover.Move.
	only func(*cluster.Node) bool
	// scorers has the deviceScorers that no call of devices is using at the moment. A DeviceScore
	// hook may call Session.Devices, which then needs another one.
	scorers []*deviceScorer
	// pastBefore makes before ignore rejections that waiting or evicting cures.
	pastBefore bool
}

// before calls the PreFilter hooks. It returns nil if all of them let the task pass.
func (f *finder) before(t *cluster.Task) *Attempt {
	for i := range f.hooks.preFilters {
		h := &f.hooks.preFilters[i]
		if !h.profiles.decideShape(t.Shape) {
			continue
		}
		if r := h.fn(t, t.Job); r != nil && !(f.pastBefore && r.Cure.Transient()) {
			return &Attempt{Task: unplaced(t), Nodes: len(f.view.Nodes()), Before: f.fault.sign(h.plugin, r)}
		}
	}
	return nil
}

// best returns the feasible node with the highest score and, of equal scores, the lowest
// name. It returns nil if no node is feasible.
func (f *finder) best(t *cluster.Task, in *scope) *cluster.Node {
	switch f.search {
	case Scan:
		return f.scan(t, in)
	case Twin:
		fast, slow := f.walkRanking(t, in), f.scan(t, in)
		if fast != slow && f.fault.err == nil && !f.findUnstableHook(t.Shape) {
			f.fault.fail("engine", "the index chose %s for task %s, the scan %s", nameOf(fast), t.ID, nameOf(slow))
		}
		return fast
	}
	return f.walkRanking(t, in)
}

func nameOf(n *cluster.Node) string {
	if n == nil {
		return "no node"
	}
	return n.Name
}

// walkRanking visits nodes in the order of the shape's ranking and stops when no later node
// can be the best. Without task-form hooks, that is at the first node.
func (f *finder) walkRanking(t *cluster.Task, in *scope) *cluster.Node {
	r := f.index.ranking(t.Shape)
	filters, scorers, most := f.taskHooks(t)
	if len(filters) == 0 && len(scorers) == 0 && in == nil {
		if top := r.top(); top >= 0 && r.keys[top] >= 0 {
			return f.view.At(r.division.first(top))
		}
		return nil
	}
	if in != nil && in.nodes != nil {
		return f.bestOfNodes(r, t, in.nodes)
	}
	var best *cluster.Node
	var bestScore int64
	ranks := f.view.Recent().Ranks()
	r.walk(func(slot int, key int64) bool {
		// Without task-form scores, the first node that passes is the best. Nodes with
		// equal keys are visited in the order of their names, so no later node wins a tie.
		if key < 0 || f.fault.err != nil || (best != nil && (len(scorers) == 0 || key+most < bestScore ||
			key+most == bestScore && ranks[slot] > ranks[best.Slot()])) {
			return false
		}
		n := f.view.At(slot)
		if !in.has(n) || f.rejectTask(filters, t, n) != nil {
			return true
		}
		score := key + f.scoreTask(scorers, t, n)
		if best == nil || score > bestScore || (score == bestScore && ranks[slot] < ranks[best.Slot()]) {
			best, bestScore = n, score
		}
		return true
	})
	return best
}

// bestOfNodes returns the best of a few nodes. It visits all of them instead of walking the
// ranking, since the nodes of a small domain may be far from the top.
func (f *finder) bestOfNodes(r *ranking, t *cluster.Task, nodes []*cluster.Node) *cluster.Node {
	filters, scorers, most := f.taskHooks(t)
	var best *cluster.Node
	var bestScore int64
	for _, n := range nodes { // they are ordered by name, so that the lowest name wins a tie
		key := r.keyAt(n.Slot())
		if key < 0 || (best != nil && key+most <= bestScore) || f.rejectTask(filters, t, n) != nil {
			continue
		}
		if score := key + f.scoreTask(scorers, t, n); best == nil || score > bestScore {
			best, bestScore = n, score
		}
	}
	return best
}

// taskHooks returns the task-form hooks that are called for the task, and the most points
// that the scores can add to the key by which nodes are ranked.
func (f *finder) taskHooks(t *cluster.Task) (filters []*hook[TaskFilter], scorers []*hook[TaskScore], most int64) {
	for i := range f.hooks.taskFilters {
		h := &f.hooks.taskFilters[i]
		if h.tasks == nil || h.tasks(t, t.Job) {
			filters = append(filters, h)
		}
	}
	if f.barred.any() {
		filters = append(filters, f.bars(t)...)
	}
	if f.keeper.active() {
		filters = append(filters, &f.keeper.hook)
	}
	if only := f.only; only != nil {
		filters = append(filters, &hook[TaskFilter]{plugin: "engine", fn: func(_ *cluster.Task, _ *cluster.Job, n *cluster.Node) *Rejection {
			if only(n) {
				return nil
			}
			return &Rejection{Reason: NoNodes}
		}})
	}
	for i := range f.hooks.taskScores {
		h := &f.hooks.taskScores[i]
		if h.tasks == nil || h.tasks(t, t.Job) {
			scorers = append(scorers, h)
			if h.upperBound == nil {
				most += h.weight * 100_000
			}
		}
	}
	return filters, scorers, most
}

func (f *finder) rejectTask(filters []*hook[TaskFilter], t *cluster.Task, n *cluster.Node) *Rejection {
	for _, h := range filters {
		if r := h.fn(t, t.Job, n); r != nil {
			return f.fault.sign(h.plugin, r)
		}
	}
	return nil
}

// scoreTask returns what task-form scores add to the key by which nodes are ranked. The key
// includes the upper bounds of scores that have one, so these are subtracted.
func (f *finder) scoreTask(scorers []*hook[TaskScore], t *cluster.Task, n *cluster.Node) int64 {
	total := int64(0)
	for _, h := range scorers {
		points := f.fault.points(h.plugin, h.weight, h.fn(t, t.Job, n))
		if h.upperBound != nil {
			most := f.fault.points(h.plugin, h.weight, h.upperBound(t.Shape, n))
			if points > most {
				f.fault.fail(h.plugin, "the score of task %s on node %s is above its bound", t.ID, n.Name)
			}
			points -= most
		}
		total += points
	}
	return total
}

// score computes the score of the node again with all its parts, for the decision.
func (f *finder) score(t *cluster.Task, n *cluster.Node) Score {
	out := Score{Parts: f.spare.parts[:0]}
	for i := range f.hooks.shapeScores {
		h := &f.hooks.shapeScores[i]
		if !h.isBound && (h.shapes == nil || h.shapes(t.Shape)) {
			out.add(f.fault, h.plugin, h.weight, h.fn(t.Shape, n))
		}
	}
	for i := range f.hooks.domainScores {
		h := &f.hooks.domainScores[i]
		if h.shapes == nil || h.shapes(t.Shape) {
			out.add(f.fault, h.plugin, h.weight, h.fn.fn(t.Shape, n, f.domainOf(h.fn.level, n)))
		}
	}
	for i := range f.hooks.taskScores {
		h := &f.hooks.taskScores[i]
		if h.tasks == nil || h.tasks(t, t.Job) {
			out.add(f.fault, h.plugin, h.weight, h.fn(t, t.Job, n))
		}
	}
	f.spare.parts, out.Parts = out.Parts, f.spare.scores.keep(out.Parts)
	return out
}

// devices implements Session.Devices.
func (f *finder) devices(shape *cluster.Shape, n *cluster.Node) ([]cluster.Claim, bool) {
	if len(f.hooks.deviceScores) == 0 {
		return n.Choose(shape, nil)
	}
	var s *deviceScorer
	if last := len(f.scorers) - 1; last >= 0 {
		s, f.scorers = f.scorers[last], f.scorers[:last]
	} else {
		s = &deviceScorer{finder: f}
		s.fn = s.score
	}
	s.shape, s.node = shape, n
	claims, ok := n.Choose(shape, s.fn)
	f.scorers = append(f.scorers, s)
	return claims, ok
}

// deviceScore returns a function that adds up the DeviceScore hooks, or nil if there are none.
func (f *finder) deviceScore(shape *cluster.Shape, n *cluster.Node) func(*cluster.Device) int64 {
	if len(f.hooks.deviceScores) == 0 {
		return nil
	}
	return (&deviceScorer{finder: f, shape: shape, node: n}).score
}

// deviceScorer computes the scores of the devices of one node for a shape.
type deviceScorer struct {
	finder *finder
	shape  *cluster.Shape
	node   *cluster.Node
	fn     func(*cluster.Device) int64 // score, kept to save an allocation for each node
}

// score adds up the DeviceScore hooks.
func (s *deviceScorer) score(d *cluster.Device) int64 {
	total := int64(0)
	for i := range s.finder.hooks.deviceScores {
		h := &s.finder.hooks.deviceScores[i]
		if !h.profiles.decideShape(s.shape) {
			continue
		}
		total += s.finder.fault.points(h.plugin, h.weight, h.fn(s.shape, s.node, d))
	}
	return total
}

// verdicts returns a function that reports whether shape-form filters reject a node for the
// task, and whether waiting or evicting may cure that. It uses the index, unless the session
// checks the index.
func (f *finder) verdicts(t *cluster.Task) verdict {
	scan := func(n *cluster.Node) (bool, bool) {
		r, _ := f.rejectAt(nil, t, n)
		return r != nil, r != nil && r.Cure.Transient()
	}
	if f.search != Indexed {
		return scan
	}
	x, shape := f.index, t.Shape
	r := x.settled(shape)
	version := f.view.Version()
	return func(n *cluster.Node) (bool, bool) {
		if now := f.view.Version(); version != now { // a task was placed or evicted since
			r, version = x.settled(shape), now
		}
		c := r.codeAt(n.Slot())
		return c != 0, c != 0 && x.codes[c].cure.Transient()
	}
}

// onlyHeld reports whether waiting or evicting may cure all rejections of the node by
// shape-form filters.
func (f *finder) onlyHeld(t *cluster.Task, n *cluster.Node) bool {
	for _, h := range f.hooks.filters {
		if h.shapes == nil || h.shapes(t.Shape) {
			if r := h.fn(t.Shape, n); r != nil && !r.Cure.Transient() {
				return false
			}
		}
	}
	return true
}
