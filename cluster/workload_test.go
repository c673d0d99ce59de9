package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestTaskByName: two alternatives of a job may have tasks with the same name.
func TestTaskByName(t *testing.T) {
	j := enginetest.Job("j").Gang(2).Build()
	j.Alternatives = append(j.Alternatives, enginetest.Job("j").Devices(1).Build().Alternatives...)
	state := enginetest.State()
	if err := state.AddJob(j); err != nil {
		t.Fatal(err)
	}
	j = state.Job("job/j")
	tests := map[string]struct {
		ref  cluster.TaskRef
		want *cluster.Task
	}{
		"in the first alternative":  {cluster.TaskRef{Job: "job/j", Name: "worker-1"}, j.Alternatives[0].Tasks[1]},
		"in the second alternative": {cluster.TaskRef{Job: "job/j", Alternative: 1, Name: "worker-0"}, j.Alternatives[1].Tasks[0]},
		"another name":              {cluster.TaskRef{Job: "job/j", Alternative: 1, Name: "worker-1"}, nil},
		"no such alternative":       {cluster.TaskRef{Job: "job/j", Alternative: 2, Name: "worker-0"}, nil},
		"a negative alternative":    {cluster.TaskRef{Job: "job/j", Alternative: -1, Name: "worker-0"}, nil},
		"another job":               {cluster.TaskRef{Job: "job/k", Name: "worker-0"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := state.Task(tt.ref)
			if got != tt.want {
				t.Fatalf("got %v, want %v", got, tt.want)
			}
			if got != nil && (got.Ref() != tt.ref || got.ID != tt.ref.ID()) {
				t.Errorf("the task has the name %v and ID %s, want %v and ID %s", got.Ref(), got.ID, tt.ref, tt.ref.ID())
			}
		})
	}
}
