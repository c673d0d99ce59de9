package statusscorer

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func TestKeep(t *testing.T) {
	job := func() *enginetest.JobBuilder { return enginetest.Job("m").CPU(1000, "1Gi") }
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		want float64
	}{
		"runs":                             {job().Health(cluster.HealthRunning).On("a"), 100},
		"runs on a node that is not ready": {job().Health(cluster.HealthRunning).On("down"), 0},
		"runs on two nodes, one not ready": {job().Gang(2).Health(cluster.HealthRunning).On("a", "down"), 0},
		"runs on two nodes":                {job().Gang(2).Health(cluster.HealthRunning).On("a", "b"), 100},
		"starting":                         {job().Health(cluster.HealthStarting).On("a"), 50},
		"starting, not ready":              {job().Health(cluster.HealthStarting).On("down"), 0},
		"failed":                           {job().Health(cluster.HealthFailed).On("a"), 0},
		"not placed":                       {job(), 0},
		"reported to run, but not placed":  {job().Health(cluster.HealthRunning), 0},
		"not known, all bound":             {job().On("a"), 100},
		"not known, all bound, not ready":  {job().On("down"), 0},
		"not known, one of two bound":      {job().Gang(2).Min(1).On("a"), 50},
		"an unknown health":                {job().Health("Sleeping").On("a"), 50},
		"reported to run, without surplus": {job().Gang(2).Min(1).Health(cluster.HealthRunning).On("a"), 100},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(tt.job,
				enginetest.Node("a").CPU(8, "64Gi"), enginetest.Node("b").CPU(8, "64Gi"), enginetest.Node("down").CPU(8, "64Gi").Phase("UNREACHABLE"))
			if got := keep(state.Job("job/m")); got != tt.want {
				t.Errorf("score %v, want %v", got, tt.want)
			}
		})
	}
}

// A task that is releasing does not count.
func TestReleasing(t *testing.T) {
	state := enginetest.State(enginetest.Node("a").CPU(8, "64Gi"), enginetest.Job("m").CPU(1000, "1Gi").Health(cluster.HealthRunning).On("a"))
	j := state.Job("job/m")
	task := j.Tasks()[0]
	evict := cluster.Evict{Task: task.Ref(), Attempt: task.Attempt + 1}
	if err := state.Apply(cluster.Decided{Changes: []cluster.Change{evict}}); err != nil {
		t.Fatal(err)
	}
	if got := keep(j); got != 0 {
		t.Errorf("score %v, want 0", got)
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"healthy": 1}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
