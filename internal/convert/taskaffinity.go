package convert

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
)

// maxTerms is the largest number of required terms of a task, after those of the task
// and of its job are combined.
const maxTerms = 1000

// selector merges the labels that the job requires of nodes (ofJob) and those that the task
// requires (own, at the path). Different values of one label are an error.
func (m *jobMaker) selector(ofJob []cluster.Label, own map[string]string, at path) []cluster.Label {
	if len(own) == 0 {
		return ofJob
	}
	checkLabels(own, at, m.r)
	labels := maps.Clone(own)
	for _, l := range ofJob {
		if v, both := labels[l.Key]; both && v != l.Value {
			m.r.errorf(at.Add(l.Key), "the job asks for %s already, and no node has both; keep one", phrase.Quote(l.Value))
		}
		labels[l.Key] = l.Value
	}
	return cluster.SortLabels(labels)
}

// nodeAffinity adds the node affinity of the task to that of its job. A node must match
// one required term of the job and one of the task. State has a single list of terms of
// which a node must match one, so each term of the job is combined with each term of the
// task.
func (m *jobMaker) nodeAffinity(s *cluster.Shape, a *v1alpha1.NodeAffinity, at path) {
	if a == nil {
		return
	}
	own := makeRequired(a.Required, at.Add("required"), m.r)
	s.Preferred = slices.Concat(s.Preferred, makePreferred(a.Preferred, at.Add("preferred"), m.r))
	switch {
	case len(own) == 0:
	case len(s.Required) == 0:
		s.Required = own
	case len(own) > maxTerms/len(s.Required):
		m.r.errorf(at.Add("required"), "%d terms, each together with any of the job's %d, are more than %d; write fewer", len(own), len(s.Required), maxTerms)
	default:
		both := make([]cluster.Term, 0, len(own)*len(s.Required))
		for _, t := range s.Required {
			for _, o := range own {
				both = append(both, slices.Concat(t, o))
			}
		}
		s.Required = both
	}
}
