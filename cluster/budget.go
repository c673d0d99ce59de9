package cluster

import (
	"cmp"
	"strings"
)

// Budget is a disruption budget: it protects tasks of the selected jobs from eviction while
// too few of them run. Tasks that were never placed count as missing too.
type Budget struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Selector  Term   `json:"selector,omitempty"` // labels of the jobs that it covers
	// Bound is how many tasks must run or, with Unavailable, how many may be missing.
	// With Percent it is a percentage of the desired tasks.
	Bound       int  `json:"bound,omitempty"`
	Percent     bool `json:"percent,omitempty"`     // Bound is a percentage
	Unavailable bool `json:"unavailable,omitempty"` // Bound is how many tasks may be missing
}

// Covers reports whether the budget applies to the job. It never applies to a retired
// job, because such a job is removed anyway.
func (b *Budget) Covers(j *Job) bool {
	return !j.Retired && b.Namespace == j.Namespace && b.Selector.Matches(j.Labels)
}

// Required returns how many of the desired tasks must run. A percentage is rounded up
// to whole tasks, with and without Unavailable.
func (b *Budget) Required(desired int) int {
	bound := b.Bound
	if b.Percent {
		bound = (desired*b.Bound + 99) / 100
	}
	if b.Unavailable {
		return max(0, desired-bound)
	}
	return bound
}

func (b *Budget) compare(o *Budget) int {
	return cmp.Or(strings.Compare(b.Namespace, o.Namespace), strings.Compare(b.Name, o.Name))
}
