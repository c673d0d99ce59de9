package engine_test

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

const second = 1_000_000_000

// patient runs a patient session at the time. It returns the latest refusal of the job, which is
// nil if the job is placed, and whether the job was not tried.
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

// TestRefusedJobsWait checks that the back-off of a job doubles each time if nothing changes.
func TestRefusedJobsWait(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("busy").Gang(2).Devices(2).On("a", "b"), enginetest.Job("new").Devices(1))
	e := enginetest.Engine(fit())
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

// TestWhatWakesJobs checks that a parked job is tried again after changes that may help it, and
// only after these.
func TestWhatWakesJobs(t *testing.T) {
	limited := cluster.Queue{Name: "q", Limits: cluster.Resources{{Name: cluster.DefaultDeviceResource, Value: 5}}}
	fresh := enginetest.Job("new").Devices(1).Shape(func(s *cluster.Shape) { s.Need.Products = []string{"A100"} })
	always := func(changes ...cluster.Change) func(*cluster.State) []cluster.Change {
		return func(*cluster.State) []cluster.Change { return changes }
	}
	tests := map[string]struct {
		changes func(*cluster.State) []cluster.Change
		waits   bool
	}{
		"nothing":                 {always(), true},
		"room on a suitable node": {always(jobGone("job/busy")), false},
		"room on another node":    {always(jobGone("job/elsewhere")), true},
		"a new suitable node":     {always(nodePut(enginetest.Node("d").GPUs(2, "A100", "80Gi"))), false},
		"a new unsuitable node":   {always(nodePut(enginetest.Node("d").GPUs(2, "L4", "8Gi"))), true},
		"a label": {func(s *cluster.State) []cluster.Change {
			return []cluster.Change{respecified(s.Node("c"), func(n *cluster.Node) { n.Devices[1].OwnSpec().Product = "A100" })}
		}, false},
		"a new job":                    {always(jobPut(enginetest.Job("other").Devices(9))), true},
		"new terms for a queue":        {always(cluster.QueuePut{Queue: limited}), false},
		"another job of the same name": {always(jobGone("job/new"), jobPut(fresh)), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := with(twoNodes(), enginetest.Node("c").GPUs(2, "L4", "80Gi"),
				enginetest.Job("busy").Gang(2).Devices(2).On("a", "b"), enginetest.Job("elsewhere").Devices(1).On("c"),
				fresh)
			e := enginetest.Engine(fit())
			if r, _ := patient(t, e, s, second, "job/new"); r == nil {
				t.Fatal("it was placed")
			}
			apply(t, s, tt.changes(s)...)
			if r, waits := patient(t, e, s, second, "job/new"); waits != tt.waits {
				t.Errorf("%+v, want waiting %t", r, tt.waits)
			}
		})
	}
}

// TestPermanentRefusalsAreParked checks that a job that was refused permanently is not tried again
// after any time, but after a suitable node was added.
func TestPermanentRefusalsAreParked(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("new").Devices(3))
	e := enginetest.Engine(fit())
	if r, _ := patient(t, e, s, second, "job/new"); r == nil || !r.Permanent || r.Retry != 0 {
		t.Fatalf("%+v", r)
	}
	apply(t, s, jobGone("job/new"), jobPut(enginetest.Job("new").Devices(3)))
	patient(t, e, s, second, "job/new")
	if r, waits := patient(t, e, s, 1<<60, "job/new"); !waits {
		t.Errorf("%+v", r)
	}
	apply(t, s, nodePut(enginetest.Node("c").GPUs(4, "A100", "80Gi")))
	if r, _ := patient(t, e, s, 1<<60, "job/new"); r != nil {
		t.Errorf("%+v", r)
	}
}

// TestRollbacksWakeNothing checks that changes that are rolled back wake no job.
func TestRollbacksWakeNothing(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("busy").Gang(2).Devices(1).On("a", "b"), enginetest.Job("new").Gang(2).Devices(2))
	e := enginetest.Engine(fit())
	patient(t, e, s, second, "job/new")
	apply(t, s, jobPut(enginetest.Job("gang").Gang(3).Devices(1)))
	if r, _ := patient(t, e, s, second, "job/gang"); r == nil {
		t.Fatal("the gang was placed")
	}
	if r, waits := patient(t, e, s, second, "job/new"); !waits {
		t.Errorf("%+v", r)
	}
}

// TestParkedJobsFollowTheirQueue checks that a queue with parked jobs is compared with its new
// siblings after it gets another parent.
func TestParkedJobsFollowTheirQueue(t *testing.T) {
	siblings := &policy{name: "Siblings", open: func(s *engine.Session) {
		s.Hooks.AddSiblingOrder(func(l, r engine.Bid) int { return int(r.Queue.Priority - l.Queue.Priority) })
	}}
	queue := func(name, parent string, priority int32) cluster.QueuePut {
		return cluster.QueuePut{Queue: cluster.Queue{Name: name, Parent: parent, Priority: priority}}
	}
	s := with(twoNodes(), enginetest.Job("busy").Gang(2).Devices(2).On("a", "b"))
	apply(t, s, queue("weak", "", 0), queue("strong", "", 1), queue("x", "weak", 0), queue("y", "strong", 0),
		jobPut(enginetest.Job("x").Queue("x").Devices(2)), jobPut(enginetest.Job("y").Queue("y").Devices(2)))
	e := enginetest.Engine(siblings, fit())
	patient(t, e, s, second, "job/x")
	apply(t, s, queue("x", "strong", 1), jobGone("job/busy"), cluster.NodeGone{Name: "b"})
	if r, _ := patient(t, e, s, 2*second, "job/x"); r != nil {
		t.Errorf("job/x was refused: %+v", r)
	}
}
