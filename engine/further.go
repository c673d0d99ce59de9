package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// lookFurther returns the refusal of a job that was rejected before any node was considered, such
// as by the limit of its queue. If no node could ever take the task, the attempt is replaced by
// one about the nodes: waiting can cure the first rejection, and would not help.
func (e *explainer) lookFurther(job *cluster.Job, r *Refusal) *Refusal {
	attempts := slices.Clone(r.Attempts)
	found := false
	for i := range attempts {
		a := &attempts[i]
		if a.Before == nil || !a.Before.Cure.Transient() || a.Whole || a.from >= len(job.Alternatives) {
			continue
		}
		alt := &job.Alternatives[a.from]
		k := slices.IndexFunc(alt.Tasks, func(t *cluster.Task) bool { return t.Name == a.Task.Name })
		if k < 0 || e.finder.best(alt.Tasks[k], nil) != nil {
			continue
		}
		nodes := e.explain(alt, alt.Tasks[k], nil, 0)
		if nodes.transient() {
			continue
		}
		nodes.Alternative, nodes.Subgroup, nodes.Placed, nodes.Min, nodes.from, nodes.to = a.Alternative, a.Subgroup, a.Placed, a.Min, a.from, a.to
		attempts[i], found = *nodes, true
	}
	if !found {
		return r
	}
	out := newRefusal(job, attempts, r.Surplus)
	out.Protected, out.Delayed = r.Protected, r.Delayed
	return out
}
