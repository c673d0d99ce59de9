package cluster

import (
	"cmp"
	"strings"
)

// Budget bounds how many tasks of some jobs may be missing at a time because they
// were evicted.
type Budget struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Selector  Term   `json:"selector,omitempty"` // labels of the jobs it is about
	// Bound is how many tasks must be running, or with Unavailable how many may be
	// missing; with Percent of all that there should be.
	Bound       int  `json:"bound,omitempty"`
	Percent     bool `json:"percent,omitempty"`
	Unavailable bool `json:"unavailable,omitempty"`
}

// Covers reports whether the budget is about the job. Nobody misses those that
// were retired.
func (b *Budget) Covers(j *Job) bool {
	return !j.Retired && b.Namespace == j.Namespace && b.Selector.Matches(j.Labels)
}

// Required is how many of the desired tasks must be running. Percentages are
// rounded up, both those that must run and those that may be missing.
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
