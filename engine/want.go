package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// want is what room is made for: tasks that a job lacks in one of its forms.
type want struct {
	job         *cluster.Job
	alternative int
	choice      int // the first of the alternatives that it is compared with
	lacks       []*cluster.Task
	last        bool // the last resorts are asked
	bounded     bool // the limit of a queue is in the way, and not a node
	limited     bool // no node was looked at: moves alone do not help
	exactly     bool // these tasks are to be placed, and not others that would do
}

func (w *want) alt() *cluster.Alternative { return &w.job.Alternatives[w.alternative] }

// of is what was tried for the alternative; nil where it was not.
func (r *Refusal) of(alternative int) *Attempt {
	i := slices.IndexFunc(r.Attempts, func(a Attempt) bool { return a.from <= alternative && alternative < a.to })
	if i < 0 {
		return nil
	}
	return &r.Attempts[i]
}

// isBounded reports whether the job was turned down for more than what nodes have:
// before any node was looked at, or by a filter that sees more than the node.
func (h *Hooks) isBounded(r *Refusal) bool {
	return slices.ContainsFunc(r.Attempts, func(a Attempt) bool {
		return a.Before != nil || slices.ContainsFunc(a.Counts, func(c Tally) bool {
			return slices.ContainsFunc(h.taskFilters, func(p hook[TaskFilter]) bool { return p.plugin == c.Plugin })
		})
	})
}

// hasLastResort reports whether a plugin has one.
func (h *Hooks) hasLastResort() bool {
	return slices.ContainsFunc(h.means, func(m Means) bool {
		return slices.ContainsFunc(h.victims[m.Purpose], func(h hook[VictimRule]) bool { return h.last != nil })
	})
}
