package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

const gpu = "nvidia.com/gpu"

func shipped(t testing.TB) *engine.Engine {
	t.Helper()
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// guests hold three of four devices although their fair share is two; owners request one more.
func guests() *cluster.State {
	node := func(name string) *enginetest.NodeBuilder {
		return enginetest.Node(name).CPU(8, "64Gi").GPUs(2, "L4", "24Gi")
	}
	guest := func(name, on string, started int64) *enginetest.JobBuilder {
		return enginetest.Job(name).Queue("guests").Preemptible().Devices(1).On(on).Started(started * int64(time.Minute))
	}
	return enginetest.State(node("a"), node("b"),
		enginetest.Queue("guests").Quota(gpu, 2000).MinRun(0, 10*time.Minute), enginetest.Queue("owners").Quota(gpu, 2000),
		guest("old", "a", 1), guest("mid", "a", 2), guest("young", "b", 55), enginetest.Job("own").Queue("owners").Devices(1).On("b"),
		enginetest.Job("x").Queue("owners").Devices(1), enginetest.Job("y").Queue("owners").Preemptible().Devices(1).Created(9))
}

func TestPlanSearchOfAnEviction(t *testing.T) {
	s := shipped(t).Open(guests(), engine.Options{Now: int64(time.Hour), Explain: true})
	defer s.Close()
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	minute := int64(time.Minute)
	want := &engine.PlanSearch{
		Purpose: engine.Reclaim, Looks: 0, Tries: 2,
		Cost:      engine.Cost{Tasks: [3]int{0, 1, 0}, Jobs: 1, Youngest: 2 * minute},
		Options:   []engine.Option{{Task: "worker-0", Node: "a", Victims: []string{"job/mid/worker-0"}, Chosen: true, Cost: engine.Cost{Tasks: [3]int{0, 1, 0}, Jobs: 1, Youngest: 2 * minute}}},
		Protected: []engine.Protection{{Protector: engine.Protector{Plugin: "MinRunTime", Reason: "VictimTooYoung"}, Count: 1, Jobs: []string{"job/young"}}},
		Rivals: []engine.Rival{
			{Job: "job/mid", Tier: cluster.TierStandard, Started: 2 * minute, Tasks: 1, Freed: 1000, Tried: true, Enough: true},
			{Job: "job/old", Tier: cluster.TierStandard, Started: minute, Tasks: 1, Freed: 1000, Tried: true, Enough: true},
		},
		Asks: cluster.Resources{{Name: gpu, Value: 1000}},
		Standings: []engine.Standing{
			{Queue: "owners", Resource: gpu, Used: 1000, Request: 3000, Share: 2000, Quota: 2000},
			{Queue: "guests", Resource: gpu, Used: 3000, Request: 3000, Share: 2000, Quota: 2000},
		},
	}
	var got *engine.PlanSearch
	for _, d := range out.Decisions {
		if d.Action == engine.EvictTask {
			got = d.PlanSearch
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("plan search (-want +got):\n%s", d)
	}
	if len(out.Refusals) != 1 || len(out.Refusals[0].Protected) != 2 || !out.Refusals[0].Protected[0].Barred || out.Refusals[0].Protected[1].Protection == nil {
		t.Errorf("refusals: %+v", out.Refusals)
	}
}

func TestCensus(t *testing.T) {
	type census struct {
		Barred    bool
		May       []string
		Protected []engine.Protection
	}
	young := []engine.Protection{{Protector: engine.Protector{Plugin: "MinRunTime", Reason: "VictimTooYoung"}, Count: 1, Jobs: []string{"job/young"}}}
	tests := map[string]struct {
		purpose engine.Purpose
		lacks   int // how many devices x lacks beyond the first
		want    census
	}{
		"within its share": {engine.Reclaim, 0, census{May: []string{"job/mid", "job/old"}, Protected: young}},
		"beyond its share": {engine.Reclaim, 1, census{Barred: true}},
		"of no weaker tier": {engine.Preempt, 0, census{Protected: []engine.Protection{
			{Protector: engine.Protector{Plugin: "Preempt", Reason: "VictimTierNotWeaker"}, Count: 3, Jobs: []string{"job/young", "job/mid", "job/old"}},
		}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := guests()
			s := shipped(t).Open(state, engine.Options{Now: int64(time.Hour)})
			defer s.Close()
			lacks := s.Lacking(&state.Job("job/x").Alternatives[0])
			for range tt.lacks {
				lacks = append(lacks, state.Job("job/y").Tasks()[0])
			}
			c := s.Census(tt.purpose, state.Job("job/x"), lacks)
			got := census{Barred: c.NoneAllowed, Protected: c.Protected}
			for _, v := range c.Allowed {
				got.May = append(got.May, v.Job.ID)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("census (-want +got):\n%s", d)
			}
		})
	}
}

// TestExplainingChangesNoDecision checks that a session that explains, and so tries more plans, makes
// the same decisions.
func TestExplainingChangesNoDecision(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var parts []enginetest.Part
		for i := range rapid.IntRange(1, 4).Draw(rt, "nodes") {
			parts = append(parts, enginetest.Node(fmt.Sprintf("n%d", i)).CPU(8, "64Gi").GPUs(2, "L4", "24Gi"))
		}
		nodes := len(parts)
		parts = append(parts, enginetest.Queue("q0").Quota(gpu, 2000), enginetest.Queue("q1").Tier(cluster.TierScavenger), enginetest.Queue("q2"))
		job := func(name string) *enginetest.JobBuilder {
			j := enginetest.Job(name).Queue(fmt.Sprintf("q%d", rapid.IntRange(0, 2).Draw(rt, "queue"))).Priority(int32(rapid.IntRange(0, 2).Draw(rt, "priority")))
			if rapid.Bool().Draw(rt, "preemptible") {
				j.Preemptible()
			}
			return j
		}
		for i := range nodes {
			for k := range rapid.IntRange(0, 2).Draw(rt, "running") {
				parts = append(parts, job(fmt.Sprintf("r%d-%d", i, k)).Devices(1).On(fmt.Sprintf("n%d", i)).Started(int64(rapid.IntRange(1, 9).Draw(rt, "started"))))
			}
		}
		for i := range rapid.IntRange(1, 4).Draw(rt, "pending") {
			parts = append(parts, job(fmt.Sprintf("p%d", i)).Gang(rapid.IntRange(1, 2).Draw(rt, "gang")).Devices(rapid.IntRange(1, 2).Draw(rt, "devices")))
		}
		state := enginetest.State(parts...)
		decide := func(explain bool) []string {
			s := shipped(t).Open(state.Clone(), engine.Options{Now: 10, Explain: explain})
			defer s.Close()
			out, err := s.Run()
			if err != nil {
				rt.Fatal(err)
			}
			var list []string
			for _, d := range out.Decisions {
				list = append(list, fmt.Sprint(d.Action, d.Task.ID(), d.Node, d.Claims, d.For, d.Reason, d.Landing))
			}
			return list
		}
		if d := cmp.Diff(decide(false), decide(true)); d != "" {
			rt.Fatalf("(-plain +explained)\n%s", d)
		}
	})
}
