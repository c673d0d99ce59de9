package engine

import (
	"iter"

	"github.com/berth-project/berth/cluster"
)

// finder finds nodes for tasks: it asks the filters and the scores, by the index or by a
// scan of all nodes.
type finder struct {
	state  *cluster.State
	hooks  *hooks
	index  *index
	search Search
	fault  *fault
	levels map[string][]*scope // what the cluster divides into, by label
}

// aim is what jobs are placed for.
type aim struct {
	minimal bool         // jobs get their minimum: what is beyond it has turns of its own
	growing *cluster.Job // whose turn is for a task beyond its minimum; nil: it is for a minimum
	goal    int          // how many of its tasks are placed then
	quiet   bool         // what fails is only tried, and needs no explanation
	later   uint64       // at this version of the nodes, nearest misses are put off; 0: they are not
}

// placer places jobs in a statement.
type placer struct {
	finder    *finder
	explainer *explainer
	shortage  shortage
	fault     *fault
	stmt      *Statement
	aim       aim
	searched  *int // steps that exact searches took in this session
}

// placer places jobs in the statement, for what the statement is for.
func (s *Session) placer(stmt *Statement) *placer {
	return &placer{finder: s.finder, explainer: s.explainer, shortage: s.shortage(stmt.aim.growing), fault: s.fault, stmt: stmt, aim: stmt.aim, searched: &s.searched}
}

// Place puts the job's pending tasks onto nodes, in the statement: the minimum
// all together or not at all, then what surplus fits. Its alternatives are tried
// in order and the first that places wins. It is the one place function:
// simulation, admission, adapters and the real thing all come here.
//
// A nil refusal means that every task has its place; one marked Surplus that the
// minimum has. In a session's own turns a job is given its minimum and no more, or
// where it has that one task more: a nil refusal then means that it has.
func (p *placer) place(job *cluster.Job) *Refusal {
	return p.placeAs(job, func(int) bool { return true })
}

// explain sums up why no node would take the task, if that is of interest.
func (p *placer) explain(alt *cluster.Alternative, t *cluster.Task, in *scope) *Attempt {
	if p.aim.quiet {
		return &Attempt{Task: unplaced(t)}
	}
	return p.explainer.explain(alt, t, in, p.aim.later)
}

// placeAs is Place with some of the choices, which begin with these alternatives.
func (p *placer) placeAs(job *cluster.Job, may func(from int) bool) *Refusal {
	var attempts []Attempt
	for from, forms := range choices(job) {
		if !may(from) {
			continue
		}
		mark := p.stmt.Checkpoint()
		alt, missing, surplus := p.placeOne(job, forms)
		if missing == nil {
			if !startable(alt) {
				p.stmt.hold(job, mark)
			}
			if surplus != nil {
				surplus.from, surplus.to = from, from+len(forms)
				return p.explainer.refusal(job, []Attempt{*surplus}, true)
			}
			return nil
		}
		p.stmt.Rollback(mark)
		missing.from, missing.to = from, from+len(forms)
		attempts = append(attempts, *missing)
		if p.fault.err != nil {
			break
		}
	}
	return p.explainer.refusal(job, attempts, false)
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
func (p *placer) placeOne(job *cluster.Job, forms []cluster.Alternative) (alt *cluster.Alternative, missing, surplus *Attempt) {
	if forms[0].Whole != nil {
		alt, missing = p.placeWhole(job, forms)
		return alt, missing, nil
	}
	missing, surplus = p.placeAlternative(&forms[0])
	return &forms[0], missing, surplus
}

// placeAlternative returns what kept the minimum from being placed, or else what
// kept the surplus.
func (p *placer) placeAlternative(alt *cluster.Alternative) (missing, surplus *Attempt) {
	g := p.gang(alt, nil)
	if a := g.depleted(); a != nil {
		return a, nil
	}
	mark := p.stmt.Checkpoint()
	missing = g.arrange()
	for next := g; missing != nil && p.fault.err == nil && next.wanted != nil; {
		p.stmt.Rollback(mark)
		if next = next.instead(); next == nil {
			break
		}
		if next.arrange() == nil {
			g, missing = next, nil
		}
	}
	if missing != nil && p.fault.err == nil {
		p.stmt.Rollback(mark)
		again := p.gang(alt, nil)
		if again.exact() {
			g = p.gang(alt, nil) // the minimum is placed: find out where the rest may go
			missing = g.arrange()
		} else if again.unsure && missing == g.alone {
			missing.Never = false // perhaps it is only badly arranged
		}
	}
	if missing != nil {
		return missing, nil
	}
	switch {
	case p.aim.growing != nil && len(alt.Tasks) > 0 && alt.Tasks[0].Job == p.aim.growing:
		return nil, g.surplus(p.aim.goal - p.aim.growing.Placed())
	case p.aim.minimal:
		return nil, nil
	}
	return nil, g.surplus(len(g.left))
}

// placeTask finds the task the best of all nodes, or of the scope, and allocates it there.
func (p *placer) placeTask(alt *cluster.Alternative, t *cluster.Task, in *scope) bool {
	// 1. What needs no node is asked first: it is the cheapest no.
	if p.finder.before(t) != nil {
		return false
	}
	// 2. The best node, by filter and score.
	node := p.finder.best(t, in)
	if node == nil || p.fault.err != nil {
		return false
	}
	// 3. Devices on it, and the books.
	d := p.decision(alt, t, node, in)
	claims, ok := p.finder.devices(t.Shape, node)
	if p.fault.err != nil {
		return false
	}
	if !ok {
		p.fault.fail("NodeResourcesFit", "no filter of the profile saw that the devices of node %s cannot hold task %s; is the plugin missing?", node.Name, t.ID)
		return false
	}
	d.Claims = claims
	return p.allocate(t, d, node)
}

func (p *placer) decision(alt *cluster.Alternative, t *cluster.Task, n *cluster.Node, in *scope) Decision {
	d := Decision{Node: n.Name, Alternative: alt.Name, Score: p.finder.score(t, n)}
	if p.explainer.all {
		d.Candidates = p.finder.candidates(t, in)
	}
	return d
}

// allocate books what the filters let through.
func (p *placer) allocate(t *cluster.Task, d Decision, n *cluster.Node) bool {
	if err := p.stmt.allocate(t, d, n); err != nil {
		p.fault.fail("NodeResourcesFit", "no filter of the profile saw it: %v; is the plugin missing?", err)
		return false
	}
	return true
}

// before asks the hooks that need no node.
func (f *finder) before(t *cluster.Task) *Attempt {
	for _, h := range f.hooks.prePredicates {
		if r := h.fn(t, t.Job); r != nil {
			r.Plugin = h.plugin
			return &Attempt{Task: unplaced(t), Nodes: len(f.state.Nodes()), Before: r}
		}
	}
	return nil
}

// best finds the node with the highest score, ties to the lowest name; nil if none is feasible.
func (f *finder) best(t *cluster.Task, in *scope) *cluster.Node {
	switch f.search {
	case Scan:
		return f.scan(t, in)
	case Twin:
		fast, slow := f.walk(t, in), f.scan(t, in)
		if fast != slow && f.fault.err == nil {
			f.fault.fail("engine", "the index chose %s for task %s, the scan %s", nameOf(fast), t.ID, nameOf(slow))
		}
		return fast
	}
	return f.walk(t, in)
}

func nameOf(n *cluster.Node) string {
	if n == nil {
		return "no node"
	}
	return n.Name
}

// walk goes down the shape's ranking and stops when the rest cannot win any
// more: at the first node, unless task-form hooks have a say.
func (f *finder) walk(t *cluster.Task, in *scope) *cluster.Node {
	r := f.index.ranking(t.Shape)
	filters, scorers, most := f.taskHooks(t)
	if len(filters) == 0 && len(scorers) == 0 && in == nil {
		if top := r.top(); top >= 0 && r.keys[top] >= 0 {
			return f.state.At(top)
		}
		return nil
	}
	if in != nil && in.nodes != nil {
		return f.bestOf(r, t, in.nodes)
	}
	var best *cluster.Node
	var bestScore int64
	ranks := f.state.Ranks()
	r.walk(ranks, func(slot int) bool {
		key := r.keys[slot]
		// Without task-form scores the first that passes is the best. Of equal keys
		// those with the lower names come first, so no later one wins a tie either.
		if key < 0 || f.fault.err != nil || (best != nil && (len(scorers) == 0 || key+most < bestScore ||
			key+most == bestScore && ranks[slot] > ranks[best.Slot()])) {
			return false
		}
		n := f.state.At(slot)
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

// bestOf reads the best of a few nodes off the ranking: a domain is small, and
// the top of the ranking may be far from it.
func (f *finder) bestOf(r *ranking, t *cluster.Task, nodes []*cluster.Node) *cluster.Node {
	filters, scorers, most := f.taskHooks(t)
	var best *cluster.Node
	var bestScore int64
	for _, n := range nodes { // by name, so that ties go to the lowest
		key := r.keys[n.Slot()]
		if key < 0 || (best != nil && key+most <= bestScore) || f.rejectTask(filters, t, n) != nil {
			continue
		}
		if score := key + f.scoreTask(scorers, t, n); best == nil || score > bestScore {
			best, bestScore = n, score
		}
	}
	return best
}

// taskHooks are the task-form hooks that matter for the task, and the most
// points that its scorers can add to what nodes are ranked by.
func (f *finder) taskHooks(t *cluster.Task) (filters []hook[PredicateFn], scorers []hook[NodeOrderFn], most int64) {
	for _, h := range f.hooks.predicates {
		if h.tasks == nil || h.tasks(t, t.Job) {
			filters = append(filters, h)
		}
	}
	for _, h := range f.hooks.nodeOrders {
		if h.tasks == nil || h.tasks(t, t.Job) {
			scorers = append(scorers, h)
			if h.most == nil {
				most += h.weight * 100_000
			}
		}
	}
	return filters, scorers, most
}

func (f *finder) rejectTask(filters []hook[PredicateFn], t *cluster.Task, n *cluster.Node) *Rejection {
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
func (f *finder) scoreTask(scorers []hook[NodeOrderFn], t *cluster.Task, n *cluster.Node) int64 {
	total := int64(0)
	for _, h := range scorers {
		points := f.points(h.plugin, h.weight, h.fn(t, t.Job, n))
		if h.most != nil {
			most := f.points(h.plugin, h.weight, h.most(t.Shape, n))
			if points > most {
				f.fault.fail(h.plugin, "the score of task %s on node %s is above its bound", t.ID, n.Name)
			}
			points -= most
		}
		total += points
	}
	return total
}

// score works the parts of the node's score out again, to be shown.
func (f *finder) score(t *cluster.Task, n *cluster.Node) Score {
	out := Score{Parts: make([]Part, 0, len(f.hooks.shapeOrders)+len(f.hooks.nodeOrders))}
	for _, h := range f.hooks.shapeOrders {
		if !h.bound && (h.shapes == nil || h.shapes(t.Shape)) {
			out.add(f, h.plugin, h.weight, h.fn(t.Shape, n))
		}
	}
	for _, h := range f.hooks.nodeOrders {
		if h.tasks == nil || h.tasks(t, t.Job) {
			out.add(f, h.plugin, h.weight, h.fn(t, t.Job, n))
		}
	}
	return out
}

// Devices are what a task of the shape would get of the node's devices as they are
// now, for hooks whose score depends on that; false where they cannot hold it.
func (f *finder) devices(shape *cluster.Shape, n *cluster.Node) ([]cluster.Claim, bool) {
	return n.Choose(shape, f.deviceScore(shape, n))
}

// deviceScore adds up the GpuOrder hooks; nil when there are none.
func (f *finder) deviceScore(shape *cluster.Shape, n *cluster.Node) func(*cluster.Device) int64 {
	if len(f.hooks.gpuOrders) == 0 {
		return nil
	}
	return func(d *cluster.Device) int64 {
		total := int64(0)
		for _, h := range f.hooks.gpuOrders {
			total += f.points(h.plugin, h.weight, h.fn(shape, n, d))
		}
		return total
	}
}

// milli rounds a score to thousandths. The conversion keeps machines that would
// fuse the product and the sum from rounding differently.
func milli(score float64) int64 { return int64(float64(score*1000) + 0.5) }

// points turns a score into weighted milli-points and holds plugins to the range.
func (f *finder) points(plugin string, weight int64, score float64) int64 {
	if !(score >= 0 && score <= 100) { // NaN included
		f.fault.fail(plugin, "a score of %v is not between 0 and 100", score)
		return 0
	}
	return weight * milli(score)
}
