package engine

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// denied is what a session remembers of the sets whose replicas it refused: while
// nothing is decided, another replica like it would be told the same.
type denied struct {
	bySet   map[string]setRefusal
	decided int // clerk.decided, when the first of them was refused
}

type setRefusal struct {
	job     *cluster.Job
	refusal *Refusal
}

// told is the refusal of another replica of the job's set, as the job's own;
// nil where the job must be tried.
func (d *denied) told(job *cluster.Job, decided int) *Refusal {
	known, told := d.bySet[job.Set.Name]
	if !told || d.decided != decided || !interchangeable(known.job, job) {
		return nil
	}
	return known.refusal.about(job)
}

// about is the refusal as that of another job, which is interchangeable with the one refused.
func (r *Refusal) about(job *cluster.Job) *Refusal {
	out := *r
	out.Job, out.Retry = job.ID, 0
	out.Attempts = slices.Clone(r.Attempts)
	for i := range out.Attempts {
		out.Attempts[i].Task.Job = job.ID // its own task is alike in all the rest
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

// interchangeable reports whether nothing that decides tells the two jobs apart:
// both wait as a whole, in the same forms.
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
