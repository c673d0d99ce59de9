package whatif

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain/explaintest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
	"github.com/google/go-cmp/cmp"
)

func farm() *cluster.State {
	return enginetest.State(
		enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "A10", "24Gi"),
		enginetest.Node("b").CPU(8, "64Gi").GPUs(4, "A100", "40Gi"),
		enginetest.Node("c").CPU(8, "64Gi").GPUs(4, "A100", "80Gi"),
		enginetest.Job("m").WholeNodes(1, "80Gi"),
	)
}

func TestResultShowsGroups(t *testing.T) {
	percent := func(v float64) map[string]float64 { return map[string]float64{"ResourceUtilizationScorer": v} }
	a100 := func(memory string) wire.Group {
		return wire.Group{Product: "A100", Count: 4, Memory: memory, Resource: cluster.DefaultDeviceResource}
	}
	simulation, err := sim.Simulate(explaintest.Engine(t), farm(), sim.Options{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	d := result(t, simulation, true).Decisions[0]
	score := 50.0
	type shown struct {
		Score  *float64
		Scores map[string]float64
		Groups []wire.GroupCandidate
	}
	want := shown{&score, percent(50), []wire.GroupCandidate{{Group: a100("40Gi"), Score: 50, Scores: percent(50)}, {Group: a100("80Gi"), Score: 25, Scores: percent(25)}}}
	if diff := cmp.Diff(want, shown{d.GroupScore, d.GroupScores, d.Groups}); diff != "" {
		t.Error(diff)
	}
	want.Groups = nil
	d = result(t, simulation, false).Decisions[0]
	if diff := cmp.Diff(want, shown{d.GroupScore, d.GroupScores, d.Groups}); diff != "" {
		t.Errorf("not explained: %s", diff)
	}
}

func TestWhyShowsTheGroup(t *testing.T) {
	r, err := Why(Question{State: farm(), Engine: explaintest.Engine(t), Workload: "job/m"})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	r.Text(&text)
	const want = `
  Group A100 × 4, 40 GiB each, score 50: ResourceUtilizationScorer 50
    runner-up of 1 other group: A100 × 4, 80 GiB each, with 25,
      ResourceUtilizationScorer 25 against 50
`
	if !strings.Contains(text.String(), want) {
		t.Errorf("want%s\nin\n%s", want, text.String())
	}
}
