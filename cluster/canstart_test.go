package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestAntiAffinityToReleasingTask checks that a task with an anti-affinity term
// against a releasing task is only nominated, and is bound once the other has stopped.
func TestAntiAffinityToReleasingTask(t *testing.T) {
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
		evicted, placed *enginetest.JobBuilder
		node            string // the node for the second job; the first is on a1
		want            cluster.Status
	}{
		"no terms":                               {job("old"), job("new"), "a1", cluster.Assumed},
		"anti-affinity":                          {job("old"), job("new").Affinity(away("old", "", 0)), "a1", cluster.Nominated},
		"anti-affinity, another node":            {job("old"), job("new").Affinity(away("old", "", 0)), "a2", cluster.Assumed},
		"anti-affinity, same rack":               {job("old"), job("new").Affinity(away("old", "rack", 0)), "a2", cluster.Nominated},
		"anti-affinity, another rack":            {job("old"), job("new").Affinity(away("old", "rack", 0)), "b1", cluster.Assumed},
		"anti-affinity, nodes without the label": {job("old"), job("new").Affinity(away("old", "zone", 0)), "a1", cluster.Assumed},
		"anti-affinity of the evicted job":       {job("old").Affinity(away("new", "rack", 0)), job("new"), "a2", cluster.Nominated},
		"preferred anti-affinity":                {job("old"), job("new").Affinity(away("old", "", 5)), "a1", cluster.Assumed},
		"affinity":                               {job("old"), job("new").Affinity(near), "a1", cluster.Assumed},
		"anti-affinity to a third job":           {job("old"), job("new").Affinity(away("third", "", 0)), "a1", cluster.Assumed},
		"anti-affinity in another namespace":     {job("old"), job("new").Affinity(elsewhere), "a1", cluster.Assumed},
		"anti-affinity to its own job":           {job("old"), job("new").Affinity(away("new", "", 0)), "a1", cluster.Assumed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(
				enginetest.Node("a1").CPU(8, "8Gi").Label("rack", "a"), enginetest.Node("a2").CPU(8, "8Gi").Label("rack", "a"), enginetest.Node("b1").CPU(8, "8Gi").Label("rack", "b"),
				tt.evicted.On("a1"), tt.placed,
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
				t.Fatalf("the task is %s, want %s", task.Status, tt.want)
			}
			if tt.want == cluster.Nominated && x.Bind(task, 2) {
				t.Error("the task is bound before the evicted task has stopped")
			}
			x.End()
			if err := s.Apply(cluster.TaskGone{Task: old.Ref()}); err != nil {
				t.Fatal(err)
			}
			if x := s.Begin(); tt.want == cluster.Nominated && !x.Bind(task, 3) {
				t.Error("the task is not bound after the evicted task has stopped")
			}
		})
	}
}
