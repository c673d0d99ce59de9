package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
)

// patience runs patient sessions and returns the jobs that each tried.
func patience(t *testing.T, e *engine.Engine, s *cluster.State, now int64) []string {
	t.Helper()
	out, err := e.Open(s, engine.Options{Now: now, Patient: true, Search: engine.Twin}).Run()
	if err != nil {
		t.Fatal(err)
	}
	return out.Tried
}

// TestBuckets: of jobs that nothing tells apart the first is tried for all, and the
// next one only where it was placed.
func TestBuckets(t *testing.T) {
	tests := map[string]struct {
		change func(*cluster.State) error
		want   []string // the jobs that are tried then
	}{
		"no change":    {func(*cluster.State) error { return nil }, nil},
		"room for one": {func(s *cluster.State) error { return s.RemoveJob("job/one") }, []string{"job/a"}},
		"room for all": {
			func(s *cluster.State) error {
				return s.AddNode(fixture.Node("c").CPU(64, "1Ti").GPUs(8, "A100", "80Gi").Build())
			},
			[]string{"job/a", "job/b", "job/c", "job/other"},
		},
		"other terms of a queue": {func(s *cluster.State) error { return s.SetQueue(&cluster.Queue{Name: "q"}) }, []string{"job/a", "job/other"}},
		"another like them": {
			func(s *cluster.State) error { return s.AddJob(fixture.Job("d").Devices(1).Build()) },
			[]string{"job/d"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := with(twoNodes(), fixture.Job("one").Devices(1).On("a"), fixture.Job("two").Devices(1).On("a"), fixture.Job("busy").Devices(2).On("b"),
				fixture.Job("a").Devices(1), fixture.Job("b").Devices(1), fixture.Job("c").Devices(1), fixture.Job("other").Devices(1).CPU(10, "0"))
			e := fixture.Engine(fit())
			if diff := cmp.Diff([]string{"job/a", "job/b", "job/c", "job/other"}, patience(t, e, s, second)); diff != "" {
				t.Fatal(diff)
			}
			if err := tt.change(s); err != nil {
				t.Fatal(err)
			}
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

// TestBackOff: only refusals at the time when a job was to be tried again count.
func TestBackOff(t *testing.T) {
	s := with(twoNodes(), fixture.Job("busy").Gang(2).Devices(2).On("a", "b"), fixture.Job("new").Gang(2).Devices(1))
	e := fixture.Engine(fit())
	patience(t, e, s, 10*second)
	for i, at := range []struct{ now, retry int64 }{{10*second + 1, 11 * second}, {10*second + 2, 11 * second}, {11 * second, 13 * second}, {12 * second, 13 * second}, {13 * second, 17 * second}} {
		// A node with room for one of the two wakes the gang.
		if err := s.AddNode(fixture.Node(fmt.Sprint("n", i)).CPU(8, "64Gi").GPUs(1, "A100", "80Gi").Build()); err != nil {
			t.Fatal(err)
		}
		patience(t, e, s, at.now)
		if r := e.Refusal(s.Job("job/new")); r == nil || r.Retry != at.retry {
			t.Errorf("at %d: %+v, want it to be tried again at %d", at.now, r, at.retry)
		}
		if _, err := s.RemoveNode(fmt.Sprint("n", i)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPublishedParametersWake: a job is tried again when a plugin works with others.
func TestPublishedParametersWake(t *testing.T) {
	parameters := uint64(1)
	learns := &policy{name: "Learns", open: func(s *engine.Session) { s.Publish("Learns", parameters) }}
	s := with(twoNodes(), fixture.Job("new").Devices(3))
	e := fixture.Engine(learns, fit())
	for i, want := range [][]string{{"job/new"}, nil, {"job/new"}, nil} {
		if i == 2 {
			parameters = 2
		}
		if diff := cmp.Diff(want, patience(t, e, s, second)); diff != "" {
			t.Errorf("session %d: %s", i, diff)
		}
	}
}

// TestNewsAlone: a patient session tells a refusal once, until it says something else.
func TestNewsAlone(t *testing.T) {
	s := with(twoNodes(), fixture.Job("new").Devices(3))
	e := fixture.Engine(fit())
	terms := func() error { return s.SetQueue(&cluster.Queue{Name: "q"}) } // all are tried again
	for i, step := range []struct {
		change      func() error
		tried, told int
	}{
		{func() error { return nil }, 1, 1},
		{func() error { return nil }, 0, 0},
		{terms, 1, 0},
		{func() error {
			if err := s.AddNode(fixture.Node("c").GPUs(2, "A100", "80Gi").Build()); err != nil {
				return err
			}
			return terms()
		}, 1, 1}, // one more node is counted
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		out, err := e.Open(s, engine.Options{Now: second, Patient: true}).Run()
		if err != nil || len(out.Tried) != step.tried || len(out.Refusals) != step.told {
			t.Errorf("step %d: %d tried and %d told, want %d and %d (%v)", i, len(out.Tried), len(out.Refusals), step.tried, step.told, err)
		}
	}
}
