package engine

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// denied is what a session remembers of the sets whose replicas it refused, by
// name: while nothing is decided, another replica like it would be told the same.
type denied map[string]*Refusal

// toldBefore is the refusal of another replica of the job's set, as the job's own;
// nil where the job must be tried.
func (s *Session) toldBefore(job *cluster.Job) *Refusal {
	known := s.denied[job.Set.Name]
	if known == nil || !interchangeable(known.Job, job) {
		return nil
	}
	r := *known
	r.Job, r.Retry = job, 0
	r.Attempts = slices.Clone(known.Attempts)
	for i := range r.Attempts {
		if t := r.Attempts[i].Task; t != nil {
			r.Attempts[i].Task = counterpart(t, job)
		}
	}
	return &r
}

// add remembers the refusal for other replicas of the job's set.
func (d *denied) add(r *Refusal) {
	if r.Surplus || r.Job.Set.Name == "" {
		return
	}
	if *d == nil {
		*d = denied{}
	}
	(*d)[r.Job.Set.Name] = r
}

// interchangeable reports whether nothing that decides tells the two jobs apart:
// both wait as a whole, in the same forms.
func interchangeable(a, b *cluster.Job) bool {
	return a != b && a.Chosen < 0 && b.Chosen < 0 &&
		a.Set.Desired == b.Set.Desired && a.Queue == b.Queue && a.Namespace == b.Namespace && a.Priority == b.Priority && a.Preemptible == b.Preemptible &&
		len(a.Affinity)+len(b.Affinity)+len(a.Displaced)+len(b.Displaced) == 0 && maps.Equal(a.Labels, b.Labels) &&
		slices.EqualFunc(a.Alternatives, b.Alternatives, sameForm)
}

func sameForm(a, b cluster.Alternative) bool {
	return a.Name == b.Name && a.Min == b.Min && len(a.Subgroups)+len(b.Subgroups) == 0 && a.Topology.None() && b.Topology.None() &&
		sameNodes(a.Whole, b.Whole) &&
		slices.EqualFunc(a.Tasks, b.Tasks, func(s, t *cluster.Task) bool {
			return s.Shape == t.Shape && s.Name == t.Name && s.Role == t.Role && s.Index == t.Index
		})
}

func sameNodes(a, b *cluster.WholeNodes) bool {
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

// counterpart is the task of the job that the other's task is.
func counterpart(t *cluster.Task, job *cluster.Job) *cluster.Task {
	for i := range t.Job.Alternatives {
		if at := slices.Index(t.Job.Alternatives[i].Tasks, t); at >= 0 {
			return job.Alternatives[i].Tasks[at]
		}
	}
	return t
}
