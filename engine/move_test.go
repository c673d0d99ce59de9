package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestElasticJobMoves: a job that runs without its surplus is moved without it. A surplus task
// that is placed while the job moves is placed in the domain that the job moves to, and not
// in the one that it still runs in.
func TestElasticJobMoves(t *testing.T) {
	mover := &policy{name: "Mover"}
	mover.open = func(s *engine.Session) {
		s.Hooks.AddEvictionPurpose(engine.Move, "Moved")
	}
	node := func(name, rack string, gpus int) *enginetest.NodeBuilder {
		return enginetest.Node(name).CPU(8, "32Gi").GPUs(gpus, "L4", "24Gi").Label("rack", rack)
	}
	state := enginetest.State(
		node("a", "r1", 2), node("b", "r2", 1), enginetest.Job("big").Devices(2),
		enginetest.Job("elastic").Gang(2).Min(1).Devices(1).Preemptible().Topology(cluster.Topology{Required: "rack"}).On("a"),
	)
	e := enginetest.Engine(fit(), enginetest.AllowAllVictims(), mover)
	session := func() map[string]string {
		got := map[string]string{}
		for _, d := range run(t, e, state).Decisions {
			got[string(d.Action)+" "+d.Task.ID()] = d.Node
		}
		return got
	}
	want := map[string]string{
		"Evict job/elastic/worker-0":    "a",
		"Nominate job/elastic/worker-0": "b",
		"Nominate job/big/worker-0":     "a",
	}
	if d := cmp.Diff(want, session()); d != "" {
		t.Errorf("it moves (-want +got):\n%s", d)
	}
	apply(t, state, nodePut(node("c", "r1", 1)), nodePut(node("d", "r2", 1)))
	session()
	if at := state.Job("job/elastic").Tasks()[1].At(); at == nil || at.Name != "d" {
		t.Errorf("the surplus task is on %v, want d in rack r2", at)
	}
}

// TestRunningForm: a job that runs in an alternative that its present spec does not have is
// not moved. After it is evicted, it is placed in an alternative of its present spec.
func TestRunningForm(t *testing.T) {
	mover := &policy{name: "Mover"}
	mover.open = func(s *engine.Session) {
		s.Hooks.AddEvictionPurpose(engine.Move, "Moved")
	}
	state := enginetest.State(
		enginetest.Node("a").CPU(8, "32Gi").GPUs(2, "L4", "24Gi"), enginetest.Node("b").CPU(8, "32Gi").GPUs(1, "L4", "24Gi"), enginetest.Job("big").Devices(2),
	)
	j := enginetest.Job("old").Devices(2).Preemptible().Build()
	before := enginetest.Job("old").Devices(1).Preemptible().Build().Alternatives[0]
	before.Name, before.Running = "before", true
	j.Alternatives = append(j.Alternatives, before)
	apply(t, state, cluster.JobPut{Job: *j})
	old := state.Job("job/old").Alternatives[1].Tasks[0]
	apply(t, state, runsOn(old, state.Node("a")))
	e := enginetest.Engine(fit(), enginetest.AllowAllVictims(), mover)
	if got := run(t, e, state).Decisions; len(got) > 0 {
		t.Errorf("no move can help, got %v", got)
	}
	apply(t, state, left(old), jobGone("job/big"))
	got := map[string]string{}
	for _, d := range run(t, e, state).Decisions {
		got[string(d.Action)+" "+d.Task.ID()] = fmt.Sprint(d.Node, " ", len(d.Claims))
	}
	if d := cmp.Diff(map[string]string{"Bind job/old/worker-0": "a 2"}, got); d != "" {
		t.Errorf("placed again (-want +got):\n%s", d)
	}
}
