package engine

import (
	"fmt"
	"iter"

	"github.com/berth-project/berth/cluster"
)

// Place puts the job's pending tasks onto nodes, in the statement: the minimum
// all together or not at all, then what surplus fits. Its alternatives are tried
// in order and the first that places wins. It is the one place function:
// simulation, admission, adapters and the real thing all come here.
//
// A nil refusal means that every task has its place; one marked Surplus that the
// minimum has. In a session's own turns a job is given its minimum and no more, or
// where it has that one task more: a nil refusal then means that it has.
func (s *Session) Place(stmt *Statement, job *cluster.Job) *Refusal {
	return s.placeAs(stmt, job, func(int) bool { return true })
}

// placeAs is Place with some of the choices, which begin with these alternatives.
func (s *Session) placeAs(stmt *Statement, job *cluster.Job, may func(from int) bool) *Refusal {
	var attempts []Attempt
	for from, forms := range choices(job) {
		if !may(from) {
			continue
		}
		mark := stmt.Checkpoint()
		alt, missing, surplus := s.placeOne(stmt, job, forms)
		if missing == nil {
			if !startable(alt) {
				stmt.hold(job, mark)
			}
			if surplus != nil {
				surplus.from, surplus.to = from, from+len(forms)
				return s.refusal(job, []Attempt{*surplus}, true)
			}
			return nil
		}
		stmt.Rollback(mark)
		missing.from, missing.to = from, from+len(forms)
		attempts = append(attempts, *missing)
		if s.err != nil {
			break
		}
	}
	return s.refusal(job, attempts, false)
}

// choices yields what is tried one after the other: alternatives, but those next
// to each other that each name their group are one choice. Of a job that runs in
// part the rest follows in the same form, and a form that only runs is no choice.
func choices(job *cluster.Job) iter.Seq2[int, []cluster.Alternative] {
	return func(yield func(int, []cluster.Alternative) bool) {
		if c := job.Chosen; c >= 0 {
			yield(c, job.Alternatives[c:c+1])
			return
		}
		for from := 0; from < len(job.Alternatives) && !job.Alternatives[from].Running; {
			to := from + 1
			for named(&job.Alternatives[from]) && to < len(job.Alternatives) && named(&job.Alternatives[to]) {
				to++
			}
			if !yield(from, job.Alternatives[from:to]) {
				return
			}
			from = to
		}
	}
}

func named(alt *cluster.Alternative) bool { return alt.Whole != nil && alt.Whole.Only != nil }

// startable reports whether the tasks that can start at once or run already make the minimum.
func startable(alt *cluster.Alternative) bool {
	return alt.Enough(func(t *cluster.Task) bool { return t.Runs() })
}

// placeOne places the job in one of the forms, which are one choice. It returns
// the form that was placed or else what kept the minimum from being placed, and
// what kept the surplus.
func (s *Session) placeOne(stmt *Statement, job *cluster.Job, forms []cluster.Alternative) (alt *cluster.Alternative, missing, surplus *Attempt) {
	if forms[0].Whole != nil {
		alt, missing = s.placeWhole(stmt, job, forms)
		return alt, missing, nil
	}
	missing, surplus = s.placeAlternative(stmt, &forms[0])
	return &forms[0], missing, surplus
}

// placeAlternative returns what kept the minimum from being placed, or else what
// kept the surplus.
func (s *Session) placeAlternative(stmt *Statement, alt *cluster.Alternative) (missing, surplus *Attempt) {
	g := s.gang(stmt, alt, nil)
	if a := g.depleted(); a != nil {
		return a, nil
	}
	mark := stmt.Checkpoint()
	missing = g.arrange()
	for next := g; missing != nil && s.err == nil && next.wanted != nil; {
		stmt.Rollback(mark)
		if next = next.instead(); next == nil {
			break
		}
		if next.arrange() == nil {
			g, missing = next, nil
		}
	}
	if missing != nil && s.err == nil {
		stmt.Rollback(mark)
		again := s.gang(stmt, alt, nil)
		if again.exact() {
			g = s.gang(stmt, alt, nil) // the minimum is placed: find out where the rest may go
			missing = g.arrange()
		} else if again.unsure && missing == g.alone {
			missing.Never = false // perhaps it is only badly arranged
		}
	}
	if missing != nil {
		return missing, nil
	}
	switch {
	case s.growing != nil && len(alt.Tasks) > 0 && alt.Tasks[0].Job == s.growing:
		return nil, g.surplus(s.goal - s.growing.Placed())
	case s.minimal:
		return nil, nil
	}
	return nil, g.surplus(len(g.left))
}

// placeTask finds the task the best of all nodes, or of the scope, and allocates it there.
func (s *Session) placeTask(stmt *Statement, alt *cluster.Alternative, t *cluster.Task, in *scope) bool {
	// 1. What needs no node is asked first: it is the cheapest no.
	if s.before(t) != nil {
		return false
	}
	// 2. The best node, by filter and score.
	node := s.best(t, in)
	if node == nil || s.err != nil {
		return false
	}
	// 3. Devices on it, and the books.
	d := s.decision(alt, t, node, in)
	claims, ok := s.Devices(t.Shape, node)
	if s.err != nil {
		return false
	}
	if !ok {
		s.unguarded(fmt.Errorf("the devices of node %s cannot hold task %s", node.Name, t.ID))
		return false
	}
	d.Claims = claims
	return s.allocate(stmt, t, d, node)
}

func (s *Session) decision(alt *cluster.Alternative, t *cluster.Task, n *cluster.Node, in *scope) Decision {
	d := Decision{Node: n.Name, Alternative: alt.Name, Score: s.score(t, n)}
	if s.options.Explain {
		d.Candidates = s.candidates(t, in)
	}
	return d
}

// allocate books what the filters let through.
func (s *Session) allocate(stmt *Statement, t *cluster.Task, d Decision, n *cluster.Node) bool {
	if err := stmt.allocate(t, d, n); err != nil {
		s.unguarded(err)
		return false
	}
	return true
}

// unguarded ends the session where the filters admitted a task to a node without room for it.
func (s *Session) unguarded(err error) {
	if s.err == nil {
		s.err = fmt.Errorf("no filter of the profile saw that %w; a plugin that rejects nodes without room is missing", err)
	}
}

// before asks the hooks that need no node.
func (s *Session) before(t *cluster.Task) *Attempt {
	for _, h := range s.hooks.prePredicates {
		if r := h.fn(t, t.Job); r != nil {
			r.Plugin = h.plugin
			return &Attempt{Task: unplaced(t), Nodes: len(s.State.Nodes()), Before: r}
		}
	}
	return nil
}

// best finds the node with the highest score, ties to the lowest name; nil if none is feasible.
func (s *Session) best(t *cluster.Task, in *scope) *cluster.Node {
	switch s.options.Search {
	case Scan:
		return s.scan(t, in)
	case Twin:
		fast, slow := s.walk(t, in), s.scan(t, in)
		if fast != slow && s.err == nil {
			s.fail("engine", "the index chose %s for task %s, the scan %s", nameOf(fast), t.ID, nameOf(slow))
		}
		return fast
	}
	return s.walk(t, in)
}

func nameOf(n *cluster.Node) string {
	if n == nil {
		return "no node"
	}
	return n.Name
}

// walk goes down the shape's ranking and stops when the rest cannot win any
// more: at the first node, unless task-form hooks have a say.
func (s *Session) walk(t *cluster.Task, in *scope) *cluster.Node {
	r := s.engine.index.ranking(t.Shape)
	filters, scorers, most := s.taskHooks(t)
	if len(filters) == 0 && len(scorers) == 0 && in == nil {
		if top := r.top(); top >= 0 && r.keys[top] >= 0 {
			return s.State.At(top)
		}
		return nil
	}
	if in != nil && in.nodes != nil {
		return s.bestOf(r, t, in.nodes)
	}
	var best *cluster.Node
	var bestScore int64
	ranks := s.State.Ranks()
	r.walk(ranks, func(slot int) bool {
		key := r.keys[slot]
		// Without task-form scores the first that passes is the best. Of equal keys
		// those with the lower names come first, so no later one wins a tie either.
		if key < 0 || s.err != nil || (best != nil && (len(scorers) == 0 || key+most < bestScore ||
			key+most == bestScore && ranks[slot] > ranks[best.Slot()])) {
			return false
		}
		n := s.State.At(slot)
		if !in.has(n) || s.rejectTask(filters, t, n) != nil {
			return true
		}
		score := key + s.scoreTask(scorers, t, n)
		if best == nil || score > bestScore || (score == bestScore && ranks[slot] < ranks[best.Slot()]) {
			best, bestScore = n, score
		}
		return true
	})
	return best
}

// bestOf reads the best of a few nodes off the ranking: a domain is small, and
// the top of the ranking may be far from it.
func (s *Session) bestOf(r *ranking, t *cluster.Task, nodes []*cluster.Node) *cluster.Node {
	filters, scorers, most := s.taskHooks(t)
	var best *cluster.Node
	var bestScore int64
	for _, n := range nodes { // by name, so that ties go to the lowest
		key := r.keys[n.Slot()]
		if key < 0 || (best != nil && key+most <= bestScore) || s.rejectTask(filters, t, n) != nil {
			continue
		}
		if score := key + s.scoreTask(scorers, t, n); best == nil || score > bestScore {
			best, bestScore = n, score
		}
	}
	return best
}

// taskHooks are the task-form hooks that matter for the task, and the most
// points that its scorers can add to what nodes are ranked by.
func (s *Session) taskHooks(t *cluster.Task) (filters []hook[PredicateFn], scorers []hook[NodeOrderFn], most int64) {
	for _, h := range s.hooks.predicates {
		if h.tasks == nil || h.tasks(t, t.Job) {
			filters = append(filters, h)
		}
	}
	for _, h := range s.hooks.nodeOrders {
		if h.tasks == nil || h.tasks(t, t.Job) {
			scorers = append(scorers, h)
			if h.most == nil {
				most += h.weight * 100_000
			}
		}
	}
	return filters, scorers, most
}

func (s *Session) rejectTask(filters []hook[PredicateFn], t *cluster.Task, n *cluster.Node) *Rejection {
	for _, h := range filters {
		if r := h.fn(t, t.Job, n); r != nil {
			r.Plugin = h.plugin
			return r
		}
	}
	return nil
}

// scoreTask is what task-form scores add to what nodes are ranked by: that has
// their bounds in it.
func (s *Session) scoreTask(scorers []hook[NodeOrderFn], t *cluster.Task, n *cluster.Node) int64 {
	total := int64(0)
	for _, h := range scorers {
		points := s.points(h.plugin, h.weight, h.fn(t, t.Job, n))
		if h.most != nil {
			most := s.points(h.plugin, h.weight, h.most(t.Shape, n))
			if points > most {
				s.fail(h.plugin, "the score of task %s on node %s is above its bound", t.ID, n.Name)
			}
			points -= most
		}
		total += points
	}
	return total
}

// score works the parts of the node's score out again, to be shown.
func (s *Session) score(t *cluster.Task, n *cluster.Node) Score {
	out := Score{Parts: make([]Part, 0, len(s.hooks.shapeOrders)+len(s.hooks.nodeOrders))}
	for _, h := range s.hooks.shapeOrders {
		if !h.bound && (h.shapes == nil || h.shapes(t.Shape)) {
			out.add(s, h.plugin, h.weight, h.fn(t.Shape, n))
		}
	}
	for _, h := range s.hooks.nodeOrders {
		if h.tasks == nil || h.tasks(t, t.Job) {
			out.add(s, h.plugin, h.weight, h.fn(t, t.Job, n))
		}
	}
	return out
}

// Devices are what a task of the shape would get of the node's devices as they are
// now, for hooks whose score depends on that; false where they cannot hold it.
func (s *Session) Devices(shape *cluster.Shape, n *cluster.Node) ([]cluster.Claim, bool) {
	return n.Choose(shape, s.deviceScore(shape, n))
}

// deviceScore adds up the GpuOrder hooks; nil when there are none.
func (s *Session) deviceScore(shape *cluster.Shape, n *cluster.Node) func(*cluster.Device) int64 {
	if len(s.hooks.gpuOrders) == 0 {
		return nil
	}
	return func(d *cluster.Device) int64 {
		total := int64(0)
		for _, h := range s.hooks.gpuOrders {
			total += s.points(h.plugin, h.weight, h.fn(shape, n, d))
		}
		return total
	}
}
