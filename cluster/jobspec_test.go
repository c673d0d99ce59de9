package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
)

// TestSpecIsACopy changes everything in a spec that a caller may change. The job in the
// State must stay as it is.
func TestSpecIsACopy(t *testing.T) {
	grace := int64(7)
	s := cluster.NewState()
	put := cluster.JobPut{Job: cluster.Job{
		ID: "job/a", Labels: map[string]string{"app": "a"},
		JobDetails: &cluster.JobDetails{
			StaleGrace: &grace,
			Affinity: []cluster.JobTerm{{
				Selector:   cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{"b"}}},
				Namespaces: []string{"n"},
			}},
			Set:       cluster.Set{Name: "s", Desired: 1, Group: &cluster.GroupKey{Product: "L4"}},
			Displaced: []string{"job/b"}, Remarks: []string{"first"}, Parked: &cluster.Parked{Tries: 1},
		},
		Alternatives: []cluster.Alternative{{
			Min: 1, Tasks: []*cluster.Task{{Name: "t", Subgroup: 1, Shape: &cluster.Shape{}}},
			Whole:     &cluster.WholeNodes{Replicas: 1, Only: &cluster.GroupKey{Product: "L4"}},
			Topology:  cluster.Topology{Preferred: []string{"rack"}},
			Subgroups: []cluster.Subgroup{{Name: "g", Min: 1, Topology: cluster.Topology{Preferred: []string{"rack"}}}},
		}},
	}}
	if err := s.Apply(put); err != nil {
		t.Fatal(err)
	}
	before := s.Digest()
	spec := s.Job("job/a").Spec()
	spec.Labels["app"] = "changed"
	*spec.StaleGrace++
	spec.Affinity[0].Weight = 3
	spec.Affinity[0].Selector[0].Key = "changed"
	spec.Affinity[0].Selector[0].Values[0] = "changed"
	spec.Affinity[0].Namespaces[0] = "changed"
	spec.Set.Group.Product = "changed"
	spec.Displaced[0] = "changed"
	spec.Remarks[0] = "changed"
	spec.Parked.Tries++
	alt := &spec.Alternatives[0]
	alt.Tasks[0].Name = "changed"
	alt.Whole.Replicas++
	alt.Whole.Only.Product = "changed"
	alt.Topology.Preferred[0] = "changed"
	alt.Subgroups[0].Min = 0
	alt.Subgroups[0].Topology.Preferred[0] = "changed"
	if s.Digest() != before {
		t.Errorf("a change of the spec changed the State: %+v", s.Job("job/a"))
	}
}
