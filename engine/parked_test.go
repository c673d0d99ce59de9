package engine_test

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
)

const second = 1_000_000_000

// patient runs a session at the time and returns what was last said of the job, nil
// if it is placed, and whether it was left alone.
func patient(t *testing.T, e *engine.Engine, s *cluster.State, now int64, job string) (*engine.Refusal, bool) {
	t.Helper()
	ssn := e.Open(s, engine.Options{Now: now, Patient: true, Search: engine.Twin})
	defer ssn.Close()
	out, err := ssn.Run()
	if err != nil {
		t.Fatal(err)
	}
	return e.Refusal(s.Job(job)), !slices.Contains(out.Tried, job)
}

// TestRefusedJobsWait: each time twice as long, if nothing changes.
func TestRefusedJobsWait(t *testing.T) {
	s := with(twoNodes(), fixture.Job("busy").Gang(2).Devices(2).On("a", "b"), fixture.Job("new").Devices(1))
	e := fixture.Engine(fit())
	for _, at := range []struct {
		now   int64
		waits bool
		retry int64
	}{{10 * second, false, 11 * second}, {10*second + 1, true, 11 * second}, {11 * second, false, 13 * second}, {12 * second, true, 13 * second}, {100 * second, false, 104 * second}} {
		r, waits := patient(t, e, s, at.now, "job/new")
		if r == nil || waits != at.waits || r.Retry != at.retry || r.Reason != "NoDevices" {
			t.Errorf("at %d: %+v, want waiting %t until %d", at.now, r, at.waits, at.retry)
		}
	}
}

// TestWhatWakesJobs: what may help, and nothing else.
func TestWhatWakesJobs(t *testing.T) {
	limits := func(gpus int64) *cluster.Queue {
		return &cluster.Queue{Name: "q", Limits: cluster.Resources{{Name: cluster.DefaultDeviceResource, Value: gpus}}}
	}
	tests := map[string]struct {
		change func(*cluster.State) error
		waits  bool
	}{
		"nothing":                {func(*cluster.State) error { return nil }, true},
		"room where it may go":   {func(s *cluster.State) error { return s.RemoveJob("job/busy") }, false},
		"room where it may not":  {func(s *cluster.State) error { return s.RemoveJob("job/elsewhere") }, true},
		"a node like the others": {func(s *cluster.State) error { return s.AddNode(fixture.Node("d").GPUs(2, "A100", "80Gi").Build()) }, false},
		"a node it may not use":  {func(s *cluster.State) error { return s.AddNode(fixture.Node("d").GPUs(2, "L4", "8Gi").Build()) }, true},
		"a label": {func(s *cluster.State) error {
			return s.UpdateNode("c", func(n *cluster.Node) { n.Devices[1].Product = "A100" })
		}, false},
		"another job that comes": {func(s *cluster.State) error { return s.AddJob(fixture.Job("other").Devices(9).Build()) }, true},
		"new terms for a queue":  {func(s *cluster.State) error { return s.SetQueue(limits(5)) }, false},
		"another job of the same name": {func(s *cluster.State) error {
			if err := s.RemoveJob("job/new"); err != nil {
				return err
			}
			return s.AddJob(fixture.Job("new").Devices(1).Shape(func(s *cluster.Shape) { s.Need.Products = []string{"A100"} }).Build())
		}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := with(twoNodes(), fixture.Node("c").GPUs(2, "L4", "80Gi"),
				fixture.Job("busy").Gang(2).Devices(2).On("a", "b"), fixture.Job("elsewhere").Devices(1).On("c"),
				fixture.Job("new").Devices(1).Shape(func(s *cluster.Shape) { s.Need.Products = []string{"A100"} }))
			e := fixture.Engine(fit())
			if r, _ := patient(t, e, s, second, "job/new"); r == nil {
				t.Fatal("it was placed")
			}
			if err := tt.change(s); err != nil {
				t.Fatal(err)
			}
			if r, waits := patient(t, e, s, second, "job/new"); waits != tt.waits {
				t.Errorf("%+v, want waiting %t", r, tt.waits)
			}
		})
	}
}

// TestPermanentRefusalsArePark: no time wakes them, but another node does.
func TestPermanentRefusalsAreParked(t *testing.T) {
	s := with(twoNodes(), fixture.Job("new").Devices(3))
	e := fixture.Engine(fit())
	if r, _ := patient(t, e, s, second, "job/new"); r == nil || !r.Permanent || r.Retry != 0 {
		t.Fatalf("%+v", r)
	}
	if err := s.RemoveJob("job/new"); err != nil {
		t.Fatal(err)
	}
	if err := s.AddJob(fixture.Job("new").Devices(3).Build()); err != nil {
		t.Fatal(err)
	}
	patient(t, e, s, second, "job/new")
	if r, waits := patient(t, e, s, 1<<60, "job/new"); !waits {
		t.Errorf("%+v", r)
	}
	if err := s.AddNode(fixture.Node("c").GPUs(4, "A100", "80Gi").Build()); err != nil {
		t.Fatal(err)
	}
	if r, _ := patient(t, e, s, 1<<60, "job/new"); r != nil {
		t.Errorf("%+v", r)
	}
}

// TestRollbacksWakeNobody: what others tried in vain is no news.
func TestRollbacksWakeNobody(t *testing.T) {
	s := with(twoNodes(), fixture.Job("busy").Gang(2).Devices(1).On("a", "b"), fixture.Job("new").Gang(2).Devices(2))
	e := fixture.Engine(fit())
	patient(t, e, s, second, "job/new")
	if err := s.AddJob(fixture.Job("gang").Gang(3).Devices(1).Build()); err != nil {
		t.Fatal(err)
	}
	if r, _ := patient(t, e, s, second, "job/gang"); r == nil {
		t.Fatal("the gang was placed")
	}
	if r, waits := patient(t, e, s, second, "job/new"); !waits {
		t.Errorf("%+v", r)
	}
}
