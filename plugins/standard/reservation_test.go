package standard_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/sim"
)

// A gang that fell below its minimum, was completed and falls below it again has its full
// grace period again.
func TestBelowMinimumTwice(t *testing.T) {
	s := enginetest.State(a100("a", 1), a100("b", 1), enginetest.Job("x").Gang(2).Devices(1).On("a", "b"))
	e := profile(t)
	lost := s.Job("job/x").Tasks()[1]
	cordon(t, s, "b", true)
	reportStopped(t, s, lost)
	session(t, e, s, engine.Options{Now: 10 * second})
	cordon(t, s, "b", false)
	confirmBindings(t, s, session(t, e, s, engine.Options{Now: 20 * second}))
	if !lost.Runs() {
		t.Fatalf("the lost task is %s, want it bound again", lost.Status)
	}
	cordon(t, s, "b", true)
	reportStopped(t, s, lost)
	if got := evictedTasks(session(t, e, s, engine.Options{Now: 10_000 * second})); len(got) > 0 {
		t.Errorf("evicted without any grace: %v", got)
	}
	if got := evictedTasks(session(t, e, s, engine.Options{Now: 10_060 * second})); len(got) != 1 {
		t.Errorf("evicted after the grace: %v, want what is left of the gang", got)
	}
}

// A reservation is kept only while the task may be placed on the node.
func TestCordonedNodeKeepsNoReservation(t *testing.T) {
	s := enginetest.State(a100("a", 4), low("x").Devices(4).On("a"), enginetest.Job("new").Devices(4).Priority(5))
	e := profile(t)
	session(t, e, s, engine.Options{})
	nominated := s.Job("job/new").Tasks()[0]
	if nominated.Status != cluster.Nominated {
		t.Fatalf("new is %s, want it nominated", nominated.Status)
	}
	cordon(t, s, "a", true)
	reportStopped(t, s, s.Job("job/x").Tasks()[0])
	session(t, e, s, engine.Options{})
	if nominated.Status != cluster.Pending {
		t.Errorf("new is %s on a cordoned node", nominated.Status)
	}
	cordon(t, s, "a", false)
	session(t, e, s, engine.Options{})
	if !nominated.Runs() {
		t.Errorf("new is %s once the node is back", nominated.Status)
	}
}

// A task that is never moved does not keep its reservation without end.
func TestReservationOfAMoveExpires(t *testing.T) {
	const hold = 30 * second
	for name, tt := range map[string]struct {
		after int64
		want  bool
	}{
		"within the hold": {hold, true},
		"after it":        {hold + 1, false},
	} {
		s, e := moving(), profile(t)
		x := s.Job("job/x").Tasks()[0]
		session(t, e, s, engine.Options{Now: 100 * second, Hold: hold})
		if x.Landing() == nil {
			t.Fatalf("%s: x has no reservation", name)
		}
		first := x.Landing()
		session(t, e, s, engine.Options{Now: 100*second + tt.after, Hold: hold})
		if held := x.Landing() == first; held != tt.want {
			t.Errorf("%s: held %t, want %t", name, held, tt.want)
		}
	}
}

// A job is parked if its surplus never fits. When it loses its minimum, it is tried
// again.
func TestParkedSurplusLosesItsMinimum(t *testing.T) {
	s := enginetest.State(a100("a", 2), a100("b", 2))
	j := enginetest.Job("x").Gang(2).Min(1).CPU(1000, "1Gi").Build()
	j.Tasks()[1].Shape.Need.Devices = 8 // no node has as many
	apply(t, s, cluster.JobPut{Job: *j})
	j = s.Job(j.ID)
	e := profile(t)
	out := session(t, e, s, engine.Options{Now: 10 * second, Patient: true})
	if len(out.Refusals) != 1 || !out.Refusals[0].Surplus || !out.Refusals[0].Permanent {
		t.Fatalf("refusals %v, want the surplus refused permanently", out.Refusals)
	}
	confirmBindings(t, s, out)
	if err := sim.RemoveNode(s, j.Tasks()[0].Node.Name); err != nil {
		t.Fatal(err)
	}
	session(t, e, s, engine.Options{Now: 1000 * second, Patient: true})
	if !j.HasMinimum() {
		t.Errorf("its minimum is %s, although a whole node is empty", j.Tasks()[0].Status)
	}
}
