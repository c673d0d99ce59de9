package explain

import (
	"encoding/json"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
	"github.com/berth-project/berth/plugins/standard"
)

func testEngine(t *testing.T) *engine.Engine {
	t.Helper()
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func simulate(t *testing.T, state *cluster.State) *sim.Simulation {
	t.Helper()
	simulation, err := sim.Simulate(testEngine(t), state, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return simulation
}

func testPhrases(t *testing.T) Phrases { return PhrasesOf(testEngine(t)) }

func result(t *testing.T, s *sim.Simulation, all bool) *wire.Result {
	return Results{Phrases: testPhrases(t), State: s.State}.Of(&s.Outcome, all)
}

func h100(name string) *enginetest.NodeBuilder {
	return enginetest.Node(name).CPU(96, "512Gi").GPUs(8, "H100", "80Gi")
}

func spellJSON(v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err)
	}
	return string(b)
}
