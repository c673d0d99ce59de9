package whatif

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/explain/explaintest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// Tasks that are new and pending, and tasks that are not requested any more, are listed, so
// that the totals agree with the lists.
func TestCompareListsNewAndRemovedTasks(t *testing.T) {
	node := enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "L4", "24Gi")
	model := func(name string) *enginetest.JobBuilder {
		return enginetest.Job(name).ModelReplica(cluster.Binpack).Set("m", 2).Devices(1)
	}
	run := func(parts ...enginetest.Part) *sim.Simulation {
		simulation, err := sim.Simulate(explaintest.Engine(t), enginetest.State(append(parts, node)...), sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return simulation
	}
	one, two, none := func() *sim.Simulation { return run(model("m-0")) }, func() *sim.Simulation { return run(model("m-0"), model("m-1")) }, func() *sim.Simulation { return run() }
	tests := map[string]struct {
		before, after *sim.Simulation
		want          string
	}{
		"nothing":      {two(), two(), "Nothing changes."},
		"one more":     {one(), two(), "Newly pending:\n  job/m-1 worker-0 (new)\n    0/1 nodes: 1 InsufficientDevices"},
		"one less":     {two(), one(), "Not requested any more:\n  job/m-1 worker-0 (was pending)\n"},
		"none is left": {one(), none(), "Not requested any more:\n  job/m-0 worker-0 (was on a)\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			explain.WriteDifference(&text, Compare(testPhrases(t), tt.before, tt.after))
			if !strings.HasPrefix(text.String(), tt.want) {
				t.Errorf("have\n%s\nwant it to begin with\n%s", text.String(), tt.want)
			}
		})
	}
}

// Tasks that have ended are neither placed nor pending.
func TestCompareLeavesOutEndedTasks(t *testing.T) {
	run := func(ended bool) *sim.Simulation {
		s := enginetest.State(enginetest.Node("a").CPU(8, "64Gi"), enginetest.Job("train").CPU(1000, "1Gi").Gang(2).Min(1))
		if ended {
			if err := s.Apply(cluster.TaskGone{Task: cluster.TaskRef{Job: "job/train", Name: "worker-0"}, Ended: cluster.Succeeded}); err != nil {
				t.Fatal(err)
			}
		}
		simulation, err := sim.Simulate(explaintest.Engine(t), s, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return simulation
	}
	d := Compare(testPhrases(t), run(false), run(true))
	if want := (wire.Totals{Placed: 1}); d.After != want {
		t.Errorf("after: have %+v, want %+v", d.After, want)
	}
	if len(d.Pending) > 0 || len(d.NoLongerRequested) > 0 {
		t.Errorf("have pending %v and not requested any more %v, want none", d.Pending, d.NoLongerRequested)
	}
}
