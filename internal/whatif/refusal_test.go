package whatif

import (
	"testing"
	"time"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain/explaintest"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
	"github.com/google/go-cmp/cmp"
)

// TestRefusalOfAPatientSession checks that the refusal has the time of the next try, and
// the protected workloads.
func TestRefusalOfAPatientSession(t *testing.T) {
	state := guests(enginetest.Job("x").Queue("owners").Devices(2))
	now := clockAt(8)
	out, err := sim.Session(explaintest.Engine(t), state, engine.Options{Now: now, Patient: true})
	if err != nil || len(out.Refusals) != 1 {
		t.Fatal(err, out.Refusals)
	}
	got := wire.NewRefusal(out.Refusals[0], false)
	if want := quantity.Time(now + int64(time.Second)); got.Retry != want {
		t.Errorf("it is tried again at %q, want %q", got.Retry, want)
	}
	all := []string{"job/eval", "job/s1", "job/s2"}
	want := []wire.ProtectedVictims{
		{Purpose: "Reclaim", Protected: []wire.Protection{{Plugin: "MinRunTime", Reason: "VictimTooYoung", Count: 3, Workloads: all}}},
		{Purpose: "Preempt", Protected: []wire.Protection{{Plugin: "Preempt", Reason: "VictimTierNotWeaker", Count: 3, Workloads: all}}},
	}
	if d := cmp.Diff(want, got.Protected); d != "" {
		t.Errorf("protected (-want +got):\n%s", d)
	}
}
