package whatif

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain/explaintest"
	"github.com/berth-project/berth/internal/wire"
)

// inRacks is a cluster with racks of two nodes, and a gang of tasks that request eight
// devices each.
func inRacks(t *testing.T, tasks int, edit func(*cluster.Alternative)) *cluster.State {
	t.Helper()
	const rack = "topology.example.com/rack"
	s := enginetest.State(h100("a").Label(rack, "r1"), h100("b").Label(rack, "r1"), h100("c").Label(rack, "r2"), h100("d").Label(rack, "r2"),
		enginetest.Job("x").Devices(8).On("a"))
	j := enginetest.Job("g").Gang(tasks).Devices(8).Build()
	edit(&j.Alternatives[0])
	if err := s.Apply(cluster.JobPut{Job: *j}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDomainsInWords(t *testing.T) {
	inOne := func(alt *cluster.Alternative) { alt.Topology.Required = "topology.example.com/rack" }
	workers := func(alt *cluster.Alternative) {
		alt.Min, alt.Subgroups = 1, []cluster.Subgroup{{Name: "workers", Min: 4}}
		for _, t := range alt.Tasks {
			t.Subgroup = 1
		}
	}
	tests := map[string]struct {
		state *cluster.State
		want  string
	}{
		"too small":  {inRacks(t, 3, inOne), "NoDomainFits: needs 3 in one rack: the best, r2, has room for 2; 1 node is missing; waiting cannot help"},
		"no label":   {inRacks(t, 2, func(alt *cluster.Alternative) { alt.Topology.Required = "row" }), "NoDomainFits: needs 2 in one row: no node has the label row; waiting cannot help"},
		"a subgroup": {inRacks(t, 4, workers), "placed 3 of 4 needed in workers; 0/4 nodes: 4 InsufficientDevices (want 8, most free 0); waiting can help"},
		"its rack": {inRacks(t, 4, func(alt *cluster.Alternative) {
			workers(alt)
			alt.Subgroups[0].Topology.Required = "topology.example.com/rack"
		}), "NoDomainFits: workers needs 4 in one rack: the best, r2, has room for 2; 2 nodes are missing; waiting cannot help"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			simulation := explaintest.Simulate(t, tt.state, 0)
			if got := testPhrases(t).Message(simulation.Refusals[0]); got != tt.want {
				t.Errorf("have %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestWhyNoDomain(t *testing.T) {
	e := explaintest.Engine(t)
	s := inRacks(t, 3, func(alt *cluster.Alternative) { alt.Topology.Required = "topology.example.com/rack" })
	r, err := Why(Question{Engine: e, State: s, Workload: "job/g"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r.Text(&b)
	for _, want := range []string{
		"3 × 8 devices, all in one rack.",
		"the best, r2, has room for 2; 1 node is missing",
		"− r1 (2 nodes)  room for 1 of 3, 2 nodes are missing",
		"✓ without having to be in one rack",
		"✓ with minMember 2 instead of",
		"✓ with one more node of H100 × 8 in rack r2",
	} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if got := r.Refusal.Domains; len(got) != 2 || got[0] != (wire.DomainMiss{Value: "r2", Nodes: 2, Fits: 2, Lacks: 1}) || r.Refusal.Level == "" {
		t.Errorf("%+v", r.Refusal)
	}
}
