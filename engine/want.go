package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// want is what room is made for: tasks that a job lacks in one of its alternatives.
type want struct {
	job         *cluster.Job
	alternative int
	choice      int // the first alternative of the choice that alternative belongs to
	lacks       []*cluster.Task
	last        bool // the last resorts of plugins replace their VictimRules
	// bounded means that some alternative of the job was rejected for something other than
	// the room of nodes, such as the limit of a queue; see isBounded. Evictions on any node
	// may then help.
	bounded bool
	// limited means that this alternative was rejected before any node was considered, such
	// as by the limit of a queue. Moves alone do not help, because they do not change what
	// queues use.
	limited bool
	exactly bool // exactly these tasks are placed, although others would make up the minimum too
}

func (w *want) alt() *cluster.Alternative { return &w.job.Alternatives[w.alternative] }

// of returns the attempt that covers the alternative; nil if it was not tried.
func (r *Refusal) of(alternative int) *Attempt {
	i := slices.IndexFunc(r.Attempts, func(a Attempt) bool { return a.from <= alternative && alternative < a.to })
	if i < 0 {
		return nil
	}
	return &r.Attempts[i]
}

// isBounded reports whether the job was rejected for something other than the room of nodes:
// before any node was considered, or by a plugin with a task-form filter.
func isBounded(h *Hooks, r *Refusal) bool {
	return slices.ContainsFunc(r.Attempts, func(a Attempt) bool {
		return a.Before != nil || slices.ContainsFunc(a.Counts, func(c Tally) bool {
			return slices.ContainsFunc(h.taskFilters, func(p hook[TaskFilter]) bool { return p.plugin == c.Plugin })
		})
	})
}

// hasLastResort reports whether a plugin registered a LastResort for a purpose for which
// victims may be evicted.
func hasLastResort(h *Hooks) bool {
	return slices.ContainsFunc(h.evictionPurposes, func(m EvictionPurpose) bool {
		return slices.ContainsFunc(h.victims[m.Purpose], func(h hook[VictimRule]) bool { return h.last != nil })
	})
}
