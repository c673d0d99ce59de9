package bench

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// TestAllocations limits how often memory is allocated for a decision, and for a session that
// decides nothing. The limits are what the engine needs now; a number below them may replace them.
func TestAllocations(t *testing.T) {
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	state := Cluster(100)
	shape := Shapes(1)[0]
	shape.Preemptible = false
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	job := Job(1, shape)
	must(state.Apply(cluster.JobPut{Job: job}))
	s := e.Open(state, engine.Options{})
	// The statement, the devices, the list of decisions, and the fact that the task is gone.
	check(t, "a decision", 4, func() {
		stmt := s.Begin()
		if s.Place(stmt, state.Job(job.ID)) != nil {
			t.Fatal("the job was not placed")
		}
		if out := stmt.Commit(); len(out) != 1 {
			t.Fatal(out)
		}
		task := state.Job(job.ID).Tasks()[0].Ref()
		must(state.Apply(cluster.TaskGone{Task: task}))
	})
	must(s.Close())
	must(state.Apply(cluster.JobGone{Job: job.ID}))
	check(t, "a session", 8, func() {
		s := e.Open(state, engine.Options{Patient: true})
		if _, err := s.Run(); err != nil {
			t.Fatal(err)
		}
		must(s.Close())
	})
}

func check(t *testing.T, what string, limit float64, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(200, f); n > limit {
		t.Errorf("%s allocates memory %v times, want at most %v", what, n, limit)
	} else {
		t.Logf("%s: %v", what, n)
	}
}
