package whatif

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/explain/explaintest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

var h100 = explaintest.H100

func ask(t *testing.T, state *cluster.State, id string) (*explain.Report, string) {
	t.Helper()
	r, err := Why(Question{Engine: explaintest.Engine(t), State: state, Workload: id})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r.Text(&b)
	return r, b.String()
}

func testPhrases(t *testing.T) explain.Phrases { return explain.PhrasesOf(explaintest.Engine(t)) }

func result(t *testing.T, s *sim.Simulation, all bool) *wire.Result {
	return explain.Results{Phrases: testPhrases(t), State: s.State}.Of(&s.Outcome, all)
}
