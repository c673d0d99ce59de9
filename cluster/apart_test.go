package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// A task that must be away from one that is leaving has its room reserved, and starts
// once the other has left.
func TestLeavingNeighbours(t *testing.T) {
	away := func(app, within string, weight int32) cluster.JobTerm {
		return cluster.JobTerm{Selector: cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{app}}}, Within: within, Anti: true, Weight: weight}
	}
	near := away("old", "", 0)
	near.Anti = false
	elsewhere := away("old", "", 0)
	elsewhere.Namespaces = []string{"other"}
	job := func(app string) *enginetest.JobBuilder {
		return enginetest.Job(app).CPU(1000, "1Gi").Label("app", app).Preemptible()
	}
	tests := map[string]struct {
		leaving, comes *enginetest.JobBuilder
		node           string // that the second is placed on; the first is on a1
		want           cluster.Status
	}{
		"no terms":                 {job("old"), job("new"), "a1", cluster.Assumed},
		"away":                     {job("old"), job("new").Affinity(away("old", "", 0)), "a1", cluster.Nominated},
		"away, on another node":    {job("old"), job("new").Affinity(away("old", "", 0)), "a2", cluster.Assumed},
		"away, in the rack":        {job("old"), job("new").Affinity(away("old", "rack", 0)), "a2", cluster.Nominated},
		"away, in another rack":    {job("old"), job("new").Affinity(away("old", "rack", 0)), "b1", cluster.Assumed},
		"away, in no rack":         {job("old"), job("new").Affinity(away("old", "zone", 0)), "a1", cluster.Assumed},
		"kept away":                {job("old").Affinity(away("new", "rack", 0)), job("new"), "a2", cluster.Nominated},
		"preferred":                {job("old"), job("new").Affinity(away("old", "", 5)), "a1", cluster.Assumed},
		"near":                     {job("old"), job("new").Affinity(near), "a1", cluster.Assumed},
		"away from others":         {job("old"), job("new").Affinity(away("third", "", 0)), "a1", cluster.Assumed},
		"away, another namespace":  {job("old"), job("new").Affinity(elsewhere), "a1", cluster.Assumed},
		"away from its own, alone": {job("old"), job("new").Affinity(away("new", "", 0)), "a1", cluster.Assumed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(
				enginetest.Node("a1").CPU(8, "8Gi").Label("rack", "a"), enginetest.Node("a2").CPU(8, "8Gi").Label("rack", "a"), enginetest.Node("b1").CPU(8, "8Gi").Label("rack", "b"),
				tt.leaving.On("a1"), tt.comes,
			)
			old, task := s.Job("job/old").Tasks()[0], s.Job("job/new").Tasks()[0]
			x := s.Begin()
			if err := x.Evict(old, "job/new", 1); err != nil {
				t.Fatal(err)
			}
			if err := x.Place(task, s.Node(tt.node), nil, 1); err != nil {
				t.Fatal(err)
			}
			if task.Status != tt.want {
				t.Fatalf("it is %s, want %s", task.Status, tt.want)
			}
			if tt.want == cluster.Nominated && x.Bind(task, 2) {
				t.Error("it starts before the other has left")
			}
			x.End()
			if err := s.Apply(cluster.TaskGone{Task: old.Ref()}); err != nil {
				t.Fatal(err)
			}
			if x := s.Begin(); tt.want == cluster.Nominated && !x.Bind(task, 3) {
				t.Error("it does not start once the other has left")
			}
		})
	}
}
