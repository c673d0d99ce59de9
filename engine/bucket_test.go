package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// patience runs a patient session and returns the jobs that it tried.
func patience(t *testing.T, e *engine.Engine, s *cluster.State, now int64) []string {
	t.Helper()
	out, err := e.Open(s, engine.Options{Now: now, Patient: true, Search: engine.Twin}).Run()
	if err != nil {
		t.Fatal(err)
	}
	return out.Tried
}

// TestBuckets: of interchangeable jobs, only the first is tried, and the next one only if
// the first was placed.
func TestBuckets(t *testing.T) {
	tests := map[string]struct {
		changes []cluster.Change
		want    []string // the jobs that are tried after the changes
	}{
		"no change":    {nil, nil},
		"room for one": {[]cluster.Change{jobGone("job/one")}, []string{"job/a"}},
		"room for all": {
			[]cluster.Change{nodePut(enginetest.Node("c").CPU(64, "1Ti").GPUs(8, "A100", "80Gi"))},
			[]string{"job/a", "job/b", "job/c", "job/other"},
		},
		"a queue's spec changed": {[]cluster.Change{cluster.QueuePut{Queue: cluster.Queue{Name: "q"}}}, []string{"job/a", "job/other"}},
		"another like them": {
			[]cluster.Change{jobPut(enginetest.Job("d").Devices(1))},
			[]string{"job/d"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := with(twoNodes(), enginetest.Job("one").Devices(1).On("a"), enginetest.Job("two").Devices(1).On("a"), enginetest.Job("busy").Devices(2).On("b"),
				enginetest.Job("a").Devices(1), enginetest.Job("b").Devices(1), enginetest.Job("c").Devices(1), enginetest.Job("other").Devices(1).CPU(10, "0"))
			e := enginetest.Engine(fit())
			if diff := cmp.Diff([]string{"job/a", "job/b", "job/c", "job/other"}, patience(t, e, s, second)); diff != "" {
				t.Fatal(diff)
			}
			apply(t, s, tt.changes...)
			if diff := cmp.Diff(tt.want, patience(t, e, s, second)); diff != "" {
				t.Error(diff)
			}
			for _, j := range s.Pending() {
				if r := e.Refusal(j); r == nil || r.Job != j.ID || r.Reason != "NoDevices" {
					t.Errorf("%s: %+v", j.ID, r)
				}
			}
		})
	}
}

// TestBackOff: the back-off grows only when a job is refused after its back-off has ended.
func TestBackOff(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("busy").Gang(2).Devices(2).On("a", "b"), enginetest.Job("new").Gang(2).Devices(1))
	e := enginetest.Engine(fit())
	patience(t, e, s, 10*second)
	for i, at := range []struct{ now, retry int64 }{{10*second + 1, 11 * second}, {10*second + 2, 11 * second}, {11 * second, 13 * second}, {12 * second, 13 * second}, {13 * second, 17 * second}} {
		// A node with room for one of the two wakes the gang.
		apply(t, s, nodePut(enginetest.Node(fmt.Sprint("n", i)).CPU(8, "64Gi").GPUs(1, "A100", "80Gi")))
		patience(t, e, s, at.now)
		if r := e.Refusal(s.Job("job/new")); r == nil || r.Retry != at.retry {
			t.Errorf("at %d: %+v, want it to be tried again at %d", at.now, r, at.retry)
		}
		apply(t, s, cluster.NodeGone{Name: fmt.Sprint("n", i)})
	}
}

// TestPublishedParametersWake: a refused job is tried again when a plugin publishes a new
// number.
func TestPublishedParametersWake(t *testing.T) {
	parameters := uint64(1)
	learns := &policy{name: "Learns", open: func(s *engine.Session) { s.Hooks.Publish("Learns", parameters) }}
	s := with(twoNodes(), enginetest.Job("new").Devices(3))
	e := enginetest.Engine(learns, fit())
	for i, want := range [][]string{{"job/new"}, nil, {"job/new"}, nil} {
		if i == 2 {
			parameters = 2
		}
		if diff := cmp.Diff(want, patience(t, e, s, second)); diff != "" {
			t.Errorf("session %d: %s", i, diff)
		}
	}
}

// TestRefusalsAreReportedOnce: the outcome of a patient session has a refusal only if it is
// new or differs from the last refusal of the job.
func TestRefusalsAreReportedOnce(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("new").Devices(3))
	e := enginetest.Engine(fit())
	weight := int64(1)
	terms := func() { // makes the next session try all jobs again
		weight++
		apply(t, s, cluster.QueuePut{Queue: cluster.Queue{Name: "q", Weight: weight}})
	}
	for i, step := range []struct {
		change          func()
		tried, reported int
	}{
		{func() {}, 1, 1},
		{func() {}, 0, 0},
		{terms, 1, 0},
		{func() {
			apply(t, s, nodePut(enginetest.Node("c").GPUs(2, "A100", "80Gi")))
			terms()
		}, 1, 1}, // the refusal counts one more node
	} {
		step.change()
		out, err := e.Open(s, engine.Options{Now: second, Patient: true}).Run()
		if err != nil || len(out.Tried) != step.tried || len(out.Refusals) != step.reported {
			t.Errorf("step %d: %d tried and %d reported, want %d and %d (%v)", i, len(out.Tried), len(out.Refusals), step.tried, step.reported, err)
		}
	}
}

// TestParkedJobWithAnotherSpec: a parked job gets a shape that another parked job has as
// well. It is tried again, and both jobs are placed when there is room.
func TestParkedJobWithAnotherSpec(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("busy").Gang(2).Devices(2).On("a", "b"), enginetest.Job("one").Devices(1), enginetest.Job("two").Devices(2))
	e := enginetest.Engine(fit())
	patience(t, e, s, second)
	apply(t, s, jobPut(enginetest.Job("one").Devices(2)))
	if diff := cmp.Diff([]string{"job/one"}, patience(t, e, s, second)); diff != "" {
		t.Error(diff)
	}
	apply(t, s, jobPut(enginetest.Job("one").Devices(1)))
	patience(t, e, s, second)
	apply(t, s, jobGone("job/busy"))
	patience(t, e, s, second)
	for _, id := range []string{"job/one", "job/two"} {
		if !s.Job(id).HasMinimum() {
			t.Errorf("%s is not placed", id)
		}
	}
}

// TestSetOfParkedJobChanges: a job that was refused may get another set, or none, before it leaves
// its bucket. Later changes of the first set find no bucket that is empty.
func TestSetOfParkedJobChanges(t *testing.T) {
	put := func(name, set string) cluster.Change {
		c := jobPut(enginetest.Job(name).Devices(1)).(cluster.JobPut)
		c.Job.OwnDetails().Set = cluster.Set{Name: set, Desired: 10}
		return c
	}
	s := with(twoNodes(), enginetest.Job("busy").Devices(2).On("a"), enginetest.Job("also").Devices(2).On("b"))
	e := enginetest.Engine(fit())
	apply(t, s, put("x", "first"))
	patience(t, e, s, second)
	apply(t, s, put("x", "")) // its specification is put again without a set
	patience(t, e, s, second)
	apply(t, s, put("y", "first"))
	if diff := cmp.Diff([]string{"job/y"}, patience(t, e, s, second)); diff != "" {
		t.Error(diff)
	}
	apply(t, s, jobGone("job/x"), jobGone("job/y"), put("z", "first"))
	if diff := cmp.Diff([]string{"job/z"}, patience(t, e, s, second)); diff != "" {
		t.Error(diff)
	}
}
