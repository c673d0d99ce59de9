package convert

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
)

// maxTerms bounds how many terms a task's and its job's required affinity make together.
const maxTerms = 1000

// selector is the labels that the job asks for and those that the task does.
func (m *jobMaker) selector(of []cluster.Label, own map[string]string, at path) []cluster.Label {
	if len(own) == 0 {
		return of
	}
	checkLabels(own, at, m.r)
	labels := maps.Clone(own)
	for _, l := range of {
		if v, both := labels[l.Key]; both && v != l.Value {
			m.r.errorf(at.Add(l.Key), "the job asks for %s already, and no node has both; keep one", phrase.Quote(l.Value))
		}
		labels[l.Key] = l.Value
	}
	return cluster.SortLabels(labels)
}

// nodeAffinity adds what the task asks of nodes to what its job asks. A node must
// match a term of each, which is to say: any term of one together with any of the other.
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
