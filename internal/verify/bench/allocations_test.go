package bench

import (
	"runtime"
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

// TestAllocationsOfManyShapes limits how often memory is allocated for a decision if a hundred shapes
// are requested in turn, on a cluster that is kept half full. Most of what exceeds one shape is
// rejections with amounts that no rejection had before.
func TestAllocationsOfManyShapes(t *testing.T) {
	const nodes, limit = 1000, 8.0
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	state, shapes := Cluster(nodes), Shapes(100)
	var s *engine.Session
	var running []*cluster.Job
	var before, after runtime.MemStats
	allocations, measured := uint64(0), 0
	for i := range 20_000 {
		if i%1000 == 0 {
			s = e.Open(state, engine.Options{})
		}
		job := Job(i, shapes[i%len(shapes)])
		if err := state.Apply(cluster.JobPut{Job: job}); err != nil {
			t.Fatal(err)
		}
		measure := i >= 15_000 && i%11 == 7 // reading the counter takes longer than a decision
		if measure {
			runtime.ReadMemStats(&before)
		}
		stmt := s.Begin()
		if s.Place(stmt, state.Job(job.ID)) != nil {
			t.Fatalf("%s was not placed", job.ID)
		}
		stmt.Commit()
		if measure {
			runtime.ReadMemStats(&after)
			allocations += after.Mallocs - before.Mallocs
			measured++
		}
		running = append(running, state.Job(job.ID))
		if state.Queue(cluster.DefaultQueue).Used.Of(cluster.DefaultDeviceResource) > nodes*4*int64(cluster.Whole) {
			if err := state.Apply(cluster.JobGone{Job: running[0].ID}); err != nil {
				t.Fatal(err)
			}
			running = running[1:]
		}
	}
	if mean := float64(allocations) / float64(measured); mean > limit {
		t.Errorf("a decision allocates memory %.1f times, want at most %v", mean, limit)
	} else {
		t.Logf("a decision: %.1f", mean)
	}
}

// TestMemoryOfSession checks that a session that places one job takes as much memory on a large cluster as
// on a small one. The job is preemptible and is placed on the last node with devices.
func TestMemoryOfSession(t *testing.T) {
	of := func(nodes int) uint64 {
		e, state := packed(t, "best-fit"), Cluster(nodes)
		shape := Shapes(1)[0]
		shape.Preemptible = true
		shape.Selector = []cluster.Label{{Key: "kubernetes.io/hostname", Value: state.Nodes()[nodes-2].Name}}
		const sessions = 20
		var before, after runtime.MemStats
		for i := range 2 * sessions {
			if i == sessions {
				runtime.ReadMemStats(&before)
			}
			job := Job(1, shape)
			if err := state.Apply(cluster.JobPut{Job: job}); err != nil {
				t.Fatal(err)
			}
			s := e.Open(state, engine.Options{})
			if out, err := s.Run(); err != nil || len(out.Decisions) != 1 {
				t.Fatal(out, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := state.Apply(cluster.JobGone{Job: job.ID}); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / sessions
	}
	small, large := of(100), of(20_000)
	t.Logf("%d bytes on 100 nodes, %d on 20,000", small, large)
	if large > 2*small {
		t.Errorf("a session takes %d bytes on 100 nodes and %d on 20,000", small, large)
	}
}

func check(t *testing.T, what string, limit float64, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(200, f); n > limit {
		t.Errorf("%s allocates memory %v times, want at most %v", what, n, limit)
	} else {
		t.Logf("%s: %v", what, n)
	}
}
