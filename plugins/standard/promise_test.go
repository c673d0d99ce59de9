package standard_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/sim"
)

// A gang that was torn, became whole and is torn again has its full grace again.
func TestTornTwice(t *testing.T) {
	s := enginetest.State(a100("a", 1), a100("b", 1), enginetest.Job("x").Gang(2).Devices(1).On("a", "b"))
	e := profile(t)
	lost := s.Job("job/x").Tasks()[1]
	cordon(t, s, "b", true)
	left(t, s, lost)
	session(t, e, s, engine.Options{Now: 10 * second})
	cordon(t, s, "b", false)
	settle(t, s, session(t, e, s, engine.Options{Now: 20 * second}))
	if !lost.Runs() {
		t.Fatalf("the lost task is %s, want it bound again", lost.Status)
	}
	cordon(t, s, "b", true)
	left(t, s, lost)
	if got := gone(session(t, e, s, engine.Options{Now: 10_000 * second})); len(got) > 0 {
		t.Errorf("evicted without any grace: %v", got)
	}
	if got := gone(session(t, e, s, engine.Options{Now: 10_060 * second})); len(got) != 1 {
		t.Errorf("evicted after the grace: %v, want what is left of the gang", got)
	}
}

// A promise is kept only where the task may still go.
func TestCordonedNodeKeepsNoPromise(t *testing.T) {
	s := enginetest.State(a100("a", 4), low("x").Devices(4).On("a"), enginetest.Job("new").Devices(4).Priority(5))
	e := profile(t)
	session(t, e, s, engine.Options{})
	promised := s.Job("job/new").Tasks()[0]
	if promised.Status != cluster.Nominated {
		t.Fatalf("new is %s, want it nominated", promised.Status)
	}
	cordon(t, s, "a", true)
	left(t, s, s.Job("job/x").Tasks()[0])
	session(t, e, s, engine.Options{})
	if promised.Status != cluster.Pending {
		t.Errorf("new is %s on a cordoned node", promised.Status)
	}
	cordon(t, s, "a", false)
	session(t, e, s, engine.Options{})
	if !promised.Runs() {
		t.Errorf("new is %s once the node is back", promised.Status)
	}
}

// One who never leaves does not keep his landing for ever.
func TestLandingExpires(t *testing.T) {
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
			t.Fatalf("%s: x has no landing", name)
		}
		first := x.Landing()
		session(t, e, s, engine.Options{Now: 100*second + tt.after, Hold: hold})
		if held := x.Landing() == first; held != tt.want {
			t.Errorf("%s: held %t, want %t", name, held, tt.want)
		}
	}
}

// Surplus that never fits is a reason to leave the job alone, until it loses its
// minimum: then it is another question.
func TestParkedSurplusLosesItsMinimum(t *testing.T) {
	s := enginetest.State(a100("a", 2), a100("b", 2))
	j := enginetest.Job("x").Gang(2).Min(1).CPU(1000, "1Gi").Build()
	j.Tasks()[1].Shape.Need.Devices = 8 // no node has as many
	apply(t, s, cluster.JobPut{Job: *j})
	j = s.Job(j.ID)
	e := profile(t)
	out := session(t, e, s, engine.Options{Now: 10 * second, Patient: true})
	if len(out.Refusals) != 1 || !out.Refusals[0].Surplus || !out.Refusals[0].Permanent {
		t.Fatalf("refusals %v, want the surplus refused for good", out.Refusals)
	}
	settle(t, s, out)
	if err := sim.LoseNode(s, j.Tasks()[0].Node.Name); err != nil {
		t.Fatal(err)
	}
	session(t, e, s, engine.Options{Now: 1000 * second, Patient: true})
	if !j.Stands() {
		t.Errorf("its minimum is %s, although a whole node is empty", j.Tasks()[0].Status)
	}
}
