package explain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestRefusalOfThePatient: what a patient session says of a job that it leaves alone.
func TestRefusalOfThePatient(t *testing.T) {
	state := guests(enginetest.Job("x").Queue("owners").Devices(2))
	now := clockAt(8)
	out, err := run(testEngine(t), state, engine.Options{Now: now, Patient: true})
	if err != nil || len(out.Refusals) != 1 {
		t.Fatal(err, out.Refusals)
	}
	got := Phrases{}.refusal(out.Refusals[0], false)
	if want := stamp(now + int64(time.Second)); got.Retry != want {
		t.Errorf("it is tried again at %q, want %q", got.Retry, want)
	}
	all := []string{"job/eval", "job/s1", "job/s2"}
	want := []Sparing{
		{Purpose: "Reclaim", Spared: []Protection{{"MinRunTime", "VictimTooYoung", 3, all}}},
		{Purpose: "Preempt", Spared: []Protection{{"Preempt", "VictimTierNotWeaker", 3, all}}},
	}
	if d := cmp.Diff(want, got.Spared); d != "" {
		t.Errorf("spared (-want +got):\n%s", d)
	}
}

func TestCauseText(t *testing.T) {
	for want, d := range map[string]Decision{
		"":                                 {Action: "Bind", Node: "a"},
		"job/b (Reclaimed)":                {Action: "Evict", For: "job/b", Reason: "Reclaimed"},
		"job/b (Consolidated), moves to c": {Action: "Evict", For: "job/b", Reason: "Consolidated", Landing: "c"},
		"(GangBelowMinimum)":               {Action: "Evict", Reason: "GangBelowMinimum"},
	} {
		if got := Cause(&d); got != want {
			t.Errorf("have %q, want %q", got, want)
		}
	}
}

func TestDecisionShowsLayers(t *testing.T) {
	state := enginetest.State(enginetest.Node("n").GPUs(2, "L4", "24Gi"), enginetest.Job("m").Devices(1))
	d := engine.Decision{Task: state.Job("job/m").Tasks()[0].Ref(), Node: "n", Claims: []cluster.Claim{{Device: 0, Milli: 500, Layers: 17}, {Device: 1, Milli: 500}}}
	var layers []int
	for _, x := range decision(state, &d, false).Devices {
		layers = append(layers, x.Layers)
	}
	if diff := cmp.Diff([]int{17, 0}, layers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
