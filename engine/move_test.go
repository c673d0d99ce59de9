package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
)

// A job that runs without its surplus moves without it, and what is placed of it
// while it moves goes where it is going, not where it still is.
func TestElasticJobMoves(t *testing.T) {
	mover := &policy{name: "Mover"}
	mover.open = func(s *engine.Session) {
		s.AddAdapter(func(stmt *engine.Statement, j *cluster.Job, r *engine.Refusal) *engine.Refusal {
			return s.MakeRoom(stmt, j, r, engine.Move, "Moved")
		})
	}
	node := func(name, rack string, gpus int) *fixture.NodeBuilder {
		return fixture.Node(name).CPU(8, "32Gi").GPUs(gpus, "L4", "24Gi").Label("rack", rack)
	}
	state := fixture.State(
		node("a", "r1", 2), node("b", "r2", 1), fixture.Job("big").Devices(2),
		fixture.Job("elastic").Gang(2).Min(1).Devices(1).Preemptible().Topology(cluster.Topology{Required: "rack"}).On("a"),
	)
	e := fixture.Engine(fit(), fixture.Consent(), mover)
	session := func() map[string]string {
		got := map[string]string{}
		for _, d := range run(t, e, state).Decisions {
			got[string(d.Action)+" "+d.Task.ID] = d.Node
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
	for _, n := range []*fixture.NodeBuilder{node("c", "r1", 1), node("d", "r2", 1)} {
		if err := state.AddNode(n.Build()); err != nil {
			t.Fatal(err)
		}
	}
	session()
	if at := state.Job("job/elastic").Tasks()[1].At(); at == nil || at.Name != "d" {
		t.Errorf("the surplus is at %v, and the rest goes to rack r2", at)
	}
}
