package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/sim"
)

// TestChangesOfTheJobItselfWakeIt checks that a parked job is tried again after a change of its own
// tasks or their nodes, although no other node has changed. The job waits for a surplus task that
// must be placed in the same rack.
func TestChangesOfTheJobItselfWakeIt(t *testing.T) {
	tests := map[string]struct {
		happens func(*cluster.State) error
		want    map[string]string
	}{
		"nothing": {func(*cluster.State) error { return nil }, map[string]string{}},
		"its node is lost, so that it may be placed in another rack": {
			func(s *cluster.State) error { return sim.RemoveNode(s, "a") },
			map[string]string{"job/j/worker-0": "b", "job/j/worker-1": "b"},
		},
		"its node is in another rack now": {
			func(s *cluster.State) error {
				return s.Apply(respecified(s.Node("a"), func(n *cluster.Node) { n.Labels = map[string]string{"rack": "r2"} }))
			},
			map[string]string{"job/j/worker-1": "b"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(
				enginetest.Node("a").CPU(8, "32Gi").GPUs(1, "L4", "24Gi").Label("rack", "r1"),
				enginetest.Node("b").CPU(8, "32Gi").GPUs(2, "L4", "24Gi").Label("rack", "r2"),
				enginetest.Node("c").CPU(8, "32Gi").GPUs(1, "L4", "24Gi").Label("rack", "r1"),
				enginetest.Job("other").Devices(1).On("c"), // so that waiting may help
				enginetest.Job("j").Gang(2).Min(1).Devices(1).Topology(cluster.Topology{Required: "rack"}).On("a"),
			)
			e := enginetest.Engine(fit())
			session := func() engine.Outcome {
				out, err := e.Open(state, engine.Options{Now: 1, Patient: true, Search: engine.Twin}).Run()
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			if out := session(); len(out.Refusals) != 1 || !out.Refusals[0].Surplus {
				t.Fatalf("refusals: %v", out.Refusals)
			}
			if err := tt.happens(state); err != nil {
				t.Fatal(err)
			}
			out := session()
			if diff := cmp.Diff(tt.want, where(out)); diff != "" {
				t.Error(diff)
			}
			if tried := len(out.Tried) > 0; tried == (len(tt.want) == 0) {
				t.Errorf("tried: %v", tried)
			}
		})
	}
}
