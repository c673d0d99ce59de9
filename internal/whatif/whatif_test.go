package whatif

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
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

func ask(t *testing.T, state *cluster.State, id string) (*explain.Report, string) {
	t.Helper()
	r, err := Why(Question{Engine: testEngine(t), State: state, Workload: id})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r.Text(&b)
	return r, b.String()
}

func testPhrases(t *testing.T) explain.Phrases { return explain.PhrasesOf(testEngine(t)) }

func result(t *testing.T, s *sim.Simulation, all bool) *wire.Result {
	return explain.Results{Phrases: testPhrases(t), State: s.State}.Of(&s.Outcome, all)
}
