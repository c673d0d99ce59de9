package engine

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// denied holds the refusals of replicas in this session, by set. Until the session makes
// another decision, an interchangeable replica of the set is refused for the same reason,
// so it is not tried.
type denied struct {
	bySet   map[string]setRefusal
	decided int // the value of clerk.decided when the first of these refusals was added
}

type setRefusal struct {
	job     *cluster.Job
	refusal *Refusal
}

// refusalFor returns the refusal of another replica of the job's set, rewritten for the job.
// It returns nil if the job must be tried.
func (d *denied) refusalFor(job *cluster.Job, decided int) *Refusal {
	known, found := d.bySet[job.Set.Name]
	if !found || d.decided != decided || !interchangeable(known.job, job) {
		return nil
	}
	return known.refusal.about(job)
}

// about returns a copy of the refusal for another job, which must be interchangeable
// with the refused one.
func (r *Refusal) about(job *cluster.Job) *Refusal {
	out := *r
	out.Job, out.Retry = job.ID, 0
	out.Attempts = slices.Clone(r.Attempts)
	for i := range out.Attempts {
		out.Attempts[i].Task.Job = job.ID // interchangeable jobs have tasks that are equal in all else
	}
	return &out
}

// add remembers the refusal for other replicas of the job's set.
func (d *denied) add(job *cluster.Job, r *Refusal, decided int) {
	if r.Surplus || job.Set.Name == "" {
		return
	}
	if d.bySet == nil || d.decided != decided {
		d.bySet, d.decided = map[string]setRefusal{}, decided
	}
	d.bySet[job.Set.Name] = setRefusal{job, r}
}

// interchangeable reports whether the two jobs are equal in everything that a decision
// depends on. Neither has a chosen alternative, and their alternatives are equal.
func interchangeable(a, b *cluster.Job) bool {
	return a != b && a.Chosen < 0 && b.Chosen < 0 && a.DelayEnds() == b.DelayEnds() &&
		a.Set.Desired == b.Set.Desired && a.Queue == b.Queue && a.Namespace == b.Namespace && a.Priority == b.Priority && a.Preemptible == b.Preemptible &&
		len(a.Affinity)+len(b.Affinity)+len(a.Displaced)+len(b.Displaced) == 0 && maps.Equal(a.Labels, b.Labels) &&
		slices.EqualFunc(a.Alternatives, b.Alternatives, sameAlternative)
}

func sameAlternative(a, b cluster.Alternative) bool {
	return a.Name == b.Name && a.Min == b.Min && len(a.Subgroups)+len(b.Subgroups) == 0 && a.Topology.None() && b.Topology.None() &&
		sameWholeNodes(a.Whole, b.Whole) &&
		slices.EqualFunc(a.Tasks, b.Tasks, func(s, t *cluster.Task) bool {
			return s.Shape == t.Shape && s.Name == t.Name && s.Role == t.Role && s.Index == t.Index
		})
}

func sameWholeNodes(a, b *cluster.WholeNodes) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	if (x.Only == nil) != (y.Only == nil) || x.Only != nil && *x.Only != *y.Only {
		return false
	}
	x.Only, y.Only = nil, nil
	return x == y
}
