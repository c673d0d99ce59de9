package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// scan judges every node anew, in name order, and keeps the best. It shares
// nothing with the index but the hooks: it is what the index is checked against.
func (s *Session) scan(t *cluster.Task, in *scope) *cluster.Node {
	var best *cluster.Node
	var bestScore int64
	filters, _, _ := s.taskHooks(t)
	for _, n := range s.State.Nodes() {
		if !in.has(n) {
			continue
		}
		if r, _ := s.rejectAt(filters, t, n); r != nil {
			continue
		}
		if score := s.score(t, n).Total; best == nil || score > bestScore {
			best, bestScore = n, score
		}
	}
	return best
}

// reject asks every filter about the task on the node; the first rejection counts.
func (s *Session) reject(t *cluster.Task, n *cluster.Node) *Rejection {
	filters, _, _ := s.taskHooks(t)
	r, _ := s.rejectAt(filters, t, n)
	return r
}

// rejectAt also says how many shape-form filters were left, itself included.
func (s *Session) rejectAt(filters []hook[PredicateFn], t *cluster.Task, n *cluster.Node) (*Rejection, int) {
	for i, h := range s.hooks.shapePredicates {
		if h.shapes != nil && !h.shapes(t.Shape) {
			continue
		}
		if r := h.fn(t.Shape, n); r != nil {
			r.Plugin = h.plugin
			return r, len(s.hooks.shapePredicates) - i
		}
	}
	return s.rejectTask(filters, t, n), 0
}

// candidates are all feasible nodes with their scores, best first.
func (s *Session) candidates(t *cluster.Task, in *scope) []Candidate {
	var out []Candidate
	for _, n := range s.State.Nodes() {
		if in.has(n) && s.reject(t, n) == nil {
			out = append(out, Candidate{Node: n.Name, Score: s.score(t, n)})
		}
	}
	slices.SortStableFunc(out, func(a, b Candidate) int {
		switch {
		case a.Score.Total > b.Score.Total:
			return -1
		case a.Score.Total < b.Score.Total:
			return 1
		}
		return 0
	})
	return out
}
