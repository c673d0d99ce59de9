package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// scan judges every node anew, in name order, and keeps the best. It shares
// nothing with the index but the hooks: it is what the index is checked against.
func (f *finder) scan(t *cluster.Task, in *scope) *cluster.Node {
	var best *cluster.Node
	var bestScore int64
	filters, _, _ := f.taskHooks(t)
	for _, n := range f.view.Nodes() {
		if !in.has(n) {
			continue
		}
		if r, _ := f.rejectAt(filters, t, n); r != nil {
			continue
		}
		if score := f.score(t, n).Total; best == nil || score > bestScore {
			best, bestScore = n, score
		}
	}
	return best
}

// reject asks the filters about the task on the node: see rejectAt for which
// rejection counts.
func (f *finder) reject(t *cluster.Task, n *cluster.Node) *Rejection {
	filters, _, _ := f.taskHooks(t)
	r, _ := f.rejectAt(filters, t, n)
	return r
}

// rejectAt gives the rejection of the shape-form filters or, where they let the task
// pass, that of the task-form filters, and how many shape-form filters were left.
func (f *finder) rejectAt(filters []hook[TaskFilter], t *cluster.Task, n *cluster.Node) (*Rejection, int) {
	if r, left := f.rejectShape(t.Shape, n); r != nil {
		return r, left
	}
	return f.rejectTask(filters, t, n), 0
}

// rejectShape gives the first rejection, but where that is of a static filter and
// waiting cures it, a later static one that waiting does not cure comes before it: it
// is of no use to wait for a node that will never do. It also says how many shape-form
// filters were left at the first, itself included.
func (f *finder) rejectShape(shape *cluster.Shape, n *cluster.Node) (*Rejection, int) {
	var waiting *Rejection
	left := 0
	for i, h := range f.hooks.shapeFilters {
		if waiting != nil && !h.static {
			break
		}
		if h.shapes != nil && !h.shapes(shape) {
			continue
		}
		r := h.fn(shape, n)
		if r == nil {
			continue
		}
		f.fault.sign(h.plugin, r)
		if waiting == nil {
			left = len(f.hooks.shapeFilters) - i
		}
		if !h.static || !r.Cure.Transient() {
			return r, left
		}
		if waiting == nil {
			waiting = r
		}
	}
	return waiting, left
}

// candidates are all feasible nodes with their scores, best first.
func (f *finder) candidates(t *cluster.Task, in *scope) []Candidate {
	var out []Candidate
	for _, n := range f.view.Nodes() {
		if in.has(n) && f.reject(t, n) == nil {
			out = append(out, Candidate{Node: n.Name, Score: f.score(t, n)})
		}
	}
	slices.SortStableFunc(out, func(a, b Candidate) int { return cmp.Compare(b.Score.Total, a.Score.Total) })
	return out
}
