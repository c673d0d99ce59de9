package whatif

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain/explaintest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/google/go-cmp/cmp"
)

// reclaimed is a cluster in which a simulation binds, evicts and refuses.
func reclaimed() *cluster.State {
	return enginetest.State(
		enginetest.Queue("guests").Quota("nvidia.com/gpu", 0), enginetest.Queue("owners").Quota("nvidia.com/gpu", 8000),
		enginetest.Node("a").CPU(96, "512Gi").GPUs(8, "A100", "80Gi"),
		enginetest.Job("guest").Queue("guests").Preemptible().Devices(4).On("a"),
		enginetest.Job("owner").Queue("owners").Devices(6), enginetest.Job("large").Queue("owners").Devices(9),
	)
}

// The recorded changes of a simulation, applied to the State before it, give the State
// after it. Why leaves the State as it is after the simulation.
func TestSimulationIsRepeatedByItsChanges(t *testing.T) {
	e, state := explaintest.Engine(t), reclaimed()
	begin := state.Digest()
	mark := state.Mark()
	simulation, err := sim.Simulate(e, state, sim.Options{Now: 5, Record: true})
	if err != nil {
		t.Fatal(err)
	}
	end := state.Digest()
	state.Undo(mark)
	if got := state.Digest(); got != begin {
		t.Error("the simulation is not undone")
	}
	if err := state.ApplyAll(simulation.Changes); err != nil {
		t.Fatal(err)
	}
	if got := state.Digest(); got != end || end == begin {
		t.Error("the changes of the simulation give another State")
	}
	for _, id := range []string{"job/guest", "job/owner", "job/large"} {
		state.Undo(mark)
		if _, err := Why(Question{Engine: e, State: state, Workload: id, Now: 5}); err != nil {
			t.Fatal(err)
		}
		if got := state.Digest(); got != end {
			t.Errorf("%s: Why does not leave the State at the end of the simulation", id)
		}
	}
}

func TestWhatIfIsCompareOnOneState(t *testing.T) {
	e, state := explaintest.Engine(t), reclaimed()
	begin := state.Digest()
	for name, change := range map[string]cluster.Change{
		"one more node":   cluster.NodePut{Node: *NewNodeLike(state.Node("a"), "b")},
		"one job less":    cluster.JobGone{Job: "job/owner"},
		"the node closes": cluster.NodeGone{Name: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := WhatIf(e, state, sim.Options{Now: 5}, func(s *cluster.State) error { return s.Apply(change) })
			if err != nil {
				t.Fatal(err)
			}
			if state.Digest() != begin {
				t.Error("the State is not as it was")
			}
			before, after := reclaimed(), reclaimed()
			if err := after.Apply(change); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(Compare(testPhrases(t), explaintest.Simulate(t, before, 5), explaintest.Simulate(t, after, 5)), got); d != "" {
				t.Errorf("(-two States +one State)\n%s", d)
			}
		})
	}
}
