package wire

import (
	"encoding/json"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

// TestVictimCostsInJSON checks that costs are in the JSON unless they are 0.
func TestVictimCostsInJSON(t *testing.T) {
	for want, cost := range map[string]engine.Cost{
		`{"purpose":"Preempt","looks":0,"tries":0,"options":[{"task":"t","node":"n","go":null,"victimCost":3,"movedCost":4}],"victimCost":3,"movedCost":4}`: {VictimCost: 3, MovedCost: 4},
		`{"purpose":"Preempt","looks":0,"tries":0,"options":[{"task":"t","node":"n","go":null}]}`:                                                           {},
	} {
		have, err := json.Marshal(NewPlanSearch(&engine.PlanSearch{Purpose: engine.Preempt, Cost: cost, Options: []engine.Option{{Task: "t", Node: "n", Cost: cost}}}))
		if err != nil || string(have) != want {
			t.Errorf("%v\nhave %s\nwant %s", err, have, want)
		}
	}
}

func TestDecisionShowsLayers(t *testing.T) {
	state := enginetest.State(enginetest.Node("n").GPUs(2, "L4", "24Gi"), enginetest.Job("m").Devices(1))
	d := engine.Decision{Task: state.Job("job/m").Tasks()[0].Ref(), Node: "n", Claims: []cluster.Claim{{Device: 0, Milli: 500, Layers: 17}, {Device: 1, Milli: 500}}}
	var layers []int
	for _, x := range NewDecision(state, &d, false).Devices {
		layers = append(layers, x.Layers)
	}
	if diff := cmp.Diff([]int{17, 0}, layers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
