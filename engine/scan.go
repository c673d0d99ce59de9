package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// scan calls the filters and scores for every node, in the order of names, and returns the
// best node. It uses nothing of the index, so that twin sessions can check the index against
// it.
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

// reject returns why the filters reject the node for the task; nil if they do not. See
// rejectAt for which of several rejections is returned.
func (f *finder) reject(t *cluster.Task, n *cluster.Node) *Rejection {
	filters, _, _ := f.taskHooks(t)
	r, _ := f.rejectAt(filters, t, n)
	return r
}

// rejectAt returns the rejection of the shape-form filters or, if the task passes them, that
// of the task-form filters. It also returns how many shape-form filters had not been passed,
// including the one that rejected the node.
func (f *finder) rejectAt(filters []*hook[TaskFilter], t *cluster.Task, n *cluster.Node) (*Rejection, int) {
	if r, left := f.rejectShape(t.Shape, n); r != nil {
		return r, left
	}
	return f.rejectTask(filters, t, n), 0
}

// rejectShape returns the first rejection of the shape-form filters, with one exception. If
// a static filter gives a rejection that waiting or evicting may cure, and a later static
// filter gives one that neither can cure, the latter is returned: waiting for the node would be
// useless.
// It also returns how many shape-form filters were left at the first rejection, including
// the filter that gave it.
func (f *finder) rejectShape(shape *cluster.Shape, n *cluster.Node) (*Rejection, int) {
	var waiting *Rejection
	left := 0
	for i, h := range f.hooks.filters {
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
			left = len(f.hooks.filters) - i
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

// candidates returns all feasible nodes of the scope with their scores, best first.
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
