package explain

import (
	"testing"

	"github.com/berth-project/berth/internal/explain/explaintest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

var h100 = explaintest.H100

func testPhrases(t *testing.T) Phrases { return PhrasesOf(explaintest.Engine(t)) }

func result(t *testing.T, s *sim.Simulation, all bool) *wire.Result {
	return Results{Phrases: testPhrases(t), State: s.State}.Of(&s.Outcome, all)
}
