package firstcome

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		left, right cluster.Job
		want        int
	}{
		"older is first":            {cluster.Job{ID: "job/b", Created: 1}, cluster.Job{ID: "job/a", Created: 2}, -1},
		"newer is last":             {cluster.Job{ID: "job/a", Created: 2}, cluster.Job{ID: "job/b", Created: 1}, +1},
		"the same age":              {cluster.Job{ID: "job/a", Created: 1}, cluster.Job{ID: "job/b", Created: 1}, 0},
		"unknown age is the oldest": {cluster.Job{ID: "job/b"}, cluster.Job{ID: "job/a", Created: 1}, -1},
		"priority does not count":   {cluster.Job{ID: "job/a", Created: 1}, cluster.Job{ID: "job/b", Created: 2, Priority: 9}, -1},
		"a job and itself":          {cluster.Job{ID: "job/a", Created: 1}, cluster.Job{ID: "job/a", Created: 1}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := compare(&tt.left, &tt.right); got != tt.want {
				t.Errorf("compare = %d, want %d", got, tt.want)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"newestFirst": true}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
