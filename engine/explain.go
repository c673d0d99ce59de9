package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// nearestMisses is how many rejected nodes a refusal lists, unless Options.Explain is set.
const nearestMisses = 10

// explainer finds out why jobs are refused.
type explainer struct {
	finder *finder
	all    bool // a refusal lists all rejected nodes, and not only the nearest misses
}

// explain sums up why no node is feasible for the task. If later is the present version of
// State, the nearest misses may be left to tellNearest.
func (e *explainer) explain(alt *cluster.Alternative, t *cluster.Task, in *scope, later uint64) *Attempt {
	byScan := e.finder.search == Scan || in != nil
	a := e.summarize(t, in, byScan, later)
	if e.finder.search == Twin && !byScan {
		e.compareTwin(a, e.summarize(t, in, true, 0))
	}
	if slices.ContainsFunc(a.Counts, func(c Tally) bool { return c.Cure.Transient() }) {
		a.Never, a.Apart = e.never(alt, t, in)
	}
	return a
}

// rejectedByTask returns the nodes that pass all shape-form filters and that a task-form filter
// rejects for the task, in the order of nearest misses. Such a filter is called only for nodes that
// pass all shape-form filters.
func (e *explainer) rejectedByTask(t *cluster.Task) (out []Miss) {
	filters, _, _ := e.finder.taskHooks(t)
	if len(filters) == 0 {
		return nil
	}
	r := e.finder.index.ranking(t.Shape)
	if r.feasible == 0 {
		return nil
	}
	ranks := e.finder.view.Recent().Ranks()
	slots := make([]int, 0, r.feasible)
	r.walk(func(slot int, key int64) bool {
		if key >= 0 {
			slots = append(slots, slot)
		}
		return key >= 0
	})
	slices.SortFunc(slots, func(a, b int) int { return cmp.Compare(ranks[a], ranks[b]) })
	for _, slot := range slots {
		n := e.finder.view.At(slot)
		if rejection := e.finder.rejectTask(filters, t, n); rejection != nil {
			out = append(out, Miss{n.Name, *rejection})
		}
	}
	slices.SortStableFunc(out, func(a, b Miss) int { return cmp.Compare(a.Rejection.gap(), b.Rejection.gap()) })
	return out
}

func (e *explainer) summarize(t *cluster.Task, in *scope, byScan bool, later uint64) *Attempt {
	a := &Attempt{Task: unplaced(t), Nodes: len(e.finder.members(in))}
	if byScan {
		e.explainScan(a, t, in)
	} else {
		e.explainIndex(a, t, later)
	}
	return a
}

// compareTwin fails the session if index and scan explain a refusal differently.
func (e *explainer) compareTwin(index, scan *Attempt) {
	if (!slices.Equal(index.Counts, scan.Counts) || !index.nearestDeferred && !slices.Equal(index.Nearest, scan.Nearest)) && !e.finder.findUnstableHook(index.Task.Shape) {
		e.finder.fault.fail("engine", "index and scan explain %s differently: %v, nearest %v; %v, nearest %v",
			index.Task.ID(), index.Counts, index.Nearest, scan.Counts, scan.Nearest)
	}
}

// explainIndex takes counts and nearest misses from the ranking of the shape. Computing the
// nearest misses costs more than all the rest, so it is postponed while an adapter may still
// place the job.
func (e *explainer) explainIndex(a *Attempt, t *cluster.Task, later uint64) {
	a.Counts = e.tallies(t.Shape)
	rejected := e.rejectedByTask(t)
	if len(rejected) == 0 && later > 0 && later == e.finder.view.Version() {
		a.nearestDeferred = true
		return
	}
	a.Nearest = e.nearest(t.Shape)
	if len(rejected) == 0 {
		return
	}
	a.Counts = slices.Clone(a.Counts)
	for i := range rejected {
		a.count(&rejected[i].Rejection)
	}
	e.sortTallies(a.Counts, t.Shape)
	a.Nearest = slices.Concat(rejected, a.Nearest)
	if len(a.Nearest) > nearestMisses && !e.all {
		a.Nearest = a.Nearest[:nearestMisses:nearestMisses]
	}
}

// count adds the rejection of one node to the counts.
func (a *Attempt) count(r *Rejection) {
	i := slices.IndexFunc(a.Counts, func(c Tally) bool {
		return c.Plugin == r.Plugin && c.Reason == r.Reason && c.Cure == r.Cure && c.precedence == r.Precedence
	})
	if i < 0 {
		i = len(a.Counts)
		a.Counts = append(a.Counts, Tally{r.Plugin, r.Reason, r.Cure, 0, r.Precedence})
	}
	a.Counts[i].Nodes++
}

// tellNearest computes the nearest misses that were postponed. State must be as it was when
// the refusal was made.
func (e *explainer) tellNearest(job *cluster.Job, r *Refusal) {
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if !a.nearestDeferred {
			continue
		}
		shape := a.Task.Shape
		a.nearestDeferred, a.Nearest = false, e.nearest(shape)
		if e.finder.search == Twin {
			e.compareTwin(a, e.summarize(&cluster.Task{Job: job, Alternative: a.Task.Alternative, Name: a.Task.Name, Shape: shape}, nil, true, 0))
		}
	}
}

// tallies counts the reasons for which nodes reject the shape now. The list is shared by the refusals
// of many jobs and never modified.
func (e *explainer) tallies(shape *cluster.Shape) []Tally {
	x := e.finder.index
	r := x.settled(shape)
	if r.tallies != nil {
		return r.tallies
	}
	var out []Tally
	for c, n := range r.counts {
		if n > 0 {
			k := &x.codes[c]
			out = append(out, Tally{k.plugin, k.reason, k.cure, int(n), k.precedence})
		}
	}
	e.sortTallies(out, shape)
	r.tallies = slices.Clip(out)
	return r.tallies
}

// nearest returns the rejected nodes that are nearest to being feasible for the shape. The list is
// shared like that of tallies.
func (e *explainer) nearest(shape *cluster.Shape) []Miss {
	r := e.finder.index.settled(shape)
	known := &r.nearest
	if known.misses != nil && !e.all && (!known.outdated || r.stillNearest()) {
		return known.misses
	}
	var out []Miss
	now := nearestNodes{version: e.finder.view.Version()}
	ranks := e.finder.view.Recent().Ranks()
	r.walk(func(slot int, key int64) bool {
		if key >= 0 {
			return true
		}
		n := e.finder.view.At(slot)
		if rejection, _ := e.finder.rejectShape(shape, n); rejection != nil {
			out, now.slots = append(out, Miss{n.Name, *rejection}), append(now.slots, int32(slot))
			now.key, now.rank = key, ranks[slot]
		}
		return e.all || len(out) < nearestMisses
	})
	out = slices.Clip(out)
	if len(out) == nearestMisses && !e.all {
		now.misses = out
		r.nearest = now
	}
	return out
}

// stillNearest reports whether the nodes that were nearest still are, and have not changed.
func (r *ranking) stillNearest() bool {
	known, recent := &r.nearest, r.division.view.Recent()
	at := 0
	r.walk(func(slot int, key int64) bool {
		if key >= 0 {
			return true
		}
		if slot != int(known.slots[at]) || recent.NodeVersion(slot) > known.version {
			return false
		}
		at++
		return at < len(known.slots)
	})
	if at < len(known.slots) {
		return false
	}
	known.outdated = false
	last := known.slots[at-1]
	known.key, known.rank = r.keyAt(int(last)), recent.Rank(int(last))
	return true
}

// explainScan calls the filters for every node, because rankings do not include task-form
// filters.
func (e *explainer) explainScan(a *Attempt, t *cluster.Task, in *scope) {
	type miss struct {
		Miss
		left int
	}
	var misses []miss
	filters, _, _ := e.finder.taskHooks(t)
	for _, n := range e.finder.view.Nodes() {
		if !in.has(n) {
			continue
		}
		r, left := e.finder.rejectAt(filters, t, n)
		if r == nil {
			continue
		}
		misses = append(misses, miss{Miss{n.Name, *r}, left})
		a.count(r)
	}
	e.sortTallies(a.Counts, t.Shape)
	slices.SortStableFunc(misses, func(a, b miss) int {
		return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.Rejection.gap(), b.Rejection.gap()))
	})
	for i, m := range misses {
		if i == nearestMisses && !e.all {
			return
		}
		a.Nearest = append(a.Nearest, m.Miss)
	}
}

// filterOrder returns by plugin the place of its filters in the order in which filters are
// called for tasks of the shape.
func (e *explainer) filterOrder(shape *cluster.Shape) map[string]int {
	order := map[string]int{}
	h := e.finder.hooks
	for i := range h.preFilters {
		if k := &h.preFilters[i]; k.profiles.decideShape(shape) {
			order[k.plugin] = 0
		}
	}
	for _, k := range h.filters {
		if k.profiles.decideShape(shape) {
			order[k.plugin] = 1 + k.order
		}
	}
	for i := range h.taskFilters {
		k := &h.taskFilters[i]
		if _, known := order[k.plugin]; !known && k.profiles.decideShape(shape) {
			order[k.plugin] = 1 + len(h.shapeFilters) + k.order
		}
	}
	if k := &e.finder.keeper; k.active() {
		if _, known := order[k.hook.plugin]; !known {
			order[k.hook.plugin] = 1 + len(h.shapeFilters) + len(h.taskFilters)
		}
	}
	return order
}

func (e *explainer) sortTallies(list []Tally, shape *cluster.Shape) {
	if len(list) < 2 {
		return
	}
	order := e.filterOrder(shape)
	slices.SortFunc(list, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(order[a.Plugin], order[b.Plugin]), strings.Compare(string(a.Reason), string(b.Reason)), cmp.Compare(a.Cure, b.Cure), cmp.Compare(a.precedence, b.precedence))
	})
}

func (e *explainer) standings(queue string) []Standing {
	var out []Standing
	state := e.finder.view
	for q := state.Queue(queue); q != nil; q = state.Parent(q) {
		for _, h := range e.finder.hooks.standings {
			if list := h.fn(q); list != nil {
				if out == nil {
					out = slices.Clone(list)
				} else {
					out = append(out, list...)
				}
				break
			}
		}
	}
	return out
}
