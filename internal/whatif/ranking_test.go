package whatif

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/explain/explaintest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
	"github.com/google/go-cmp/cmp"
)

// TestGroupsOfAChoice checks that one message has the reasons of all alternatives, each of which
// is for one node group.
func TestGroupsOfAChoice(t *testing.T) {
	state := enginetest.State(enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "A10", "24Gi"))
	j := enginetest.Job("m").Set("model/m", 2).Build()
	j.Alternatives = nil
	for _, k := range []cluster.GroupKey{state.View().Groups()[0].Key, {Product: "V100", Count: 8, Memory: 16384, Resource: cluster.DefaultDeviceResource}} {
		alt := enginetest.Job("m").WholeNodes(1, "8Gi").Build().Alternatives[0]
		alt.Name, alt.Whole.Replicas, alt.Whole.Only = k.Product, 2, &k
		j.Alternatives = append(j.Alternatives, alt)
	}
	if err := state.Apply(cluster.JobPut{Job: *j}); err != nil {
		t.Fatal(err)
	}
	simulation := explaintest.Simulate(t, state, 0)
	if len(simulation.Refusals) != 1 || simulation.Refusals[0].Reason != engine.GroupMissing {
		t.Fatalf("%+v", simulation.Refusals)
	}
	text := testPhrases(t).Message(simulation.Refusals[0])
	for _, want := range []string{"GroupGone: ", "NodeGroupSizeFilter removed A10 × 1 (GroupTooSmall: too few nodes, want 2, have 1)", "V100 × 8: its group is gone", "waiting can help"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	_, why := ask(t, state.Clone(), "job/m")
	for _, want := range []string{"V100 × 8  engine  its group is gone", "requests 1 whole node of A10 × 1, 8 GiB of device memory, or else 1 whole node"} {
		if !strings.Contains(strings.Join(strings.Split(why, "\n  "), " "), want) {
			t.Errorf("no %q in\n%s", want, why)
		}
	}
}

// keeper scores replicas by ten times their priority.
type keeper struct{}

func (keeper) Name() string { return "Keeper" }

func (keeper) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddInstanceScore(func(j *cluster.Job) float64 { return float64(j.Priority) * 10 })
}

// chat returns a model of which three replicas run, one is pending, and two are desired.
func chat() *cluster.State {
	return enginetest.State(enginetest.Node("a").CPU(8, "64Gi").GPUs(3, "A100", "80Gi"),
		enginetest.Job("chat-0").Set("model/chat", 2).Priority(5).Devices(1).On("a"),
		enginetest.Job("chat-1").Set("model/chat", 2).Priority(1).Devices(1).On("a"),
		enginetest.Job("chat-2").Set("model/chat", 2).Priority(3).Devices(1).On("a"),
		enginetest.Job("chat-3").Set("model/chat", 2).Devices(1),
		enginetest.Job("next").Devices(1))
}

func TestRetiredReplicas(t *testing.T) {
	e := enginetest.Engine(enginetest.Fit(), keeper{})
	simulation, err := sim.Simulate(e, chat(), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []wire.Ranking{{Set: "model/chat", Desired: 2, Replicas: []wire.Replica{
		{Workload: "job/chat-0", Score: 0.5, Scores: map[string]float64{"Keeper": 0.5}, Retired: false},
		{Workload: "job/chat-2", Score: 0.3, Scores: map[string]float64{"Keeper": 0.3}, Retired: false},
		{Workload: "job/chat-1", Score: 0.1, Scores: map[string]float64{"Keeper": 0.1}, Retired: true},
		{Workload: "job/chat-3", Score: 0, Scores: map[string]float64{"Keeper": 0}, Retired: true},
	}}}
	got := result(t, simulation, false)
	if diff := cmp.Diff(want, got.Rankings); diff != "" {
		t.Error(diff)
	}
	if title := explain.RankingTitle(&got.Rankings[0]); title != "model/chat: 2 of 4 replicas are kept" {
		t.Error(title)
	}
	var acts []string
	for _, d := range got.Decisions {
		acts = append(acts, strings.TrimSpace(d.Action+" "+d.Workload+" "+d.Reason))
	}
	if diff := cmp.Diff([]string{"Evict job/chat-1 ScaledDown", "Nominate job/next", "Bind job/next"}, acts); diff != "" {
		t.Error(diff)
	}
	if len(got.Refusals) != 0 || len(simulation.State.Pending()) != 0 {
		t.Errorf("retired replicas are pending again: %+v", got.Refusals)
	}
}

func TestWhyRetired(t *testing.T) {
	for workload, want := range map[string]string{
		"job/chat-0": "Kept: 2 of 4 replicas of model/chat are kept, and it ranks 1 with 0.5 (Keeper 0.5).",
		"job/chat-1": "Retired: 2 of 4 replicas of model/chat are kept, and it ranks 3 with 0.1 (Keeper 0.1). Evicted: its one task from a (ScaledDown). Its set has enough replicas without it.",
		"job/chat-3": "Retired: 2 of 4 replicas of model/chat are kept, and it ranks 4 with 0 (Keeper 0).",
	} {
		r, err := Why(Question{Engine: enginetest.Engine(enginetest.Fit(), keeper{}), State: chat(), Workload: workload})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		r.Text(&b)
		if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, want) || strings.Contains(text, "Running: 0") {
			t.Errorf("%s:\n%s", workload, b.String())
		}
	}
}
