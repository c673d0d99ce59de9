package whatif

import (
	"fmt"
	"slices"
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
	"pgregory.net/rapid"
)

// fitting returns the changes that help, according to the report.
func fitting(r *explain.Report) []string {
	var out []string
	for _, t := range r.Trials {
		if t.Fits {
			out = append(out, t.Change)
		}
	}
	return out
}

func TestWhyFindsTheSmallestChange(t *testing.T) {
	for name, c := range map[string]struct {
		state *cluster.State
		want  []string
	}{
		"a gang that lacks a node": {
			enginetest.State(h100("a"), h100("b"), enginetest.Job("eval").Devices(2).Preemptible().On("a"),
				enginetest.Job("x").Gang(2).Devices(8)),
			[]string{
				"with a priority above 0",
				"with job/eval (Standard, 2 devices on a) removed",
				"with 6 devices per task instead of 8",
				"with one more node of H100 × 8",
				"with minMember 1 instead of 2",
			},
		},
		"several nodes at once": {
			enginetest.State(h100("a"), enginetest.Job("other").Devices(1).On("a"), enginetest.Job("x").Gang(5).Devices(8).CPU(1000, "1Gi")),
			[]string{"with 1 device per task instead of 8", "with 5 more nodes of H100 × 8"},
		},
		"the smallest type of node first": {
			enginetest.State(h100("a"), enginetest.Node("s").CPU(8, "64Gi").GPUs(1, "L4", "24Gi"),
				enginetest.Job("e").Devices(8).On("a"), enginetest.Job("f").Devices(1).On("s"), enginetest.Job("x").DeviceMemory(1, "20Gi")),
			[]string{
				"with one more node of L4 × 1",
				"with one more node of H100 × 8",
				"with job/f (Standard, not preemptible, 1 device on s) removed",
			},
		},
		"a label": {
			enginetest.State(h100("a"), enginetest.Job("x").Devices(1).Selector("rack", "r9")),
			[]string{"without the node selector rack=r9"},
		},
		"a taint": {
			enginetest.State(h100("a").Taint("repair", "", cluster.NoSchedule), enginetest.Job("x").Devices(1)),
			[]string{"with the taint repair:NoSchedule tolerated"},
		},
		"another cell": {
			enginetest.State(h100("a").Cell("west"), enginetest.Job("x").Devices(1).Shape(func(s *cluster.Shape) { s.Cell = "east" })),
			[]string{"in cell west instead of east", "in any cell instead of east"},
		},
		"too much memory of a device": {
			enginetest.State(h100("a"), enginetest.Job("x").DeviceMemory(1, "96Gi")),
			[]string{"with 80 GiB per device instead of 96 GiB"},
		},
		"too large a share": {
			enginetest.State(enginetest.Node("a").CPU(8, "8Gi").GPUs(1, "L4", "24Gi"), enginetest.Job("e").Share(1, 700).On("a"),
				enginetest.Job("x").Share(1, 400).CPU(1, "1Mi")),
			[]string{
				"with a share of 0.3 per device instead of 0.4",
				"with one more node of L4 × 1",
				"with job/e (Standard, not preemptible, 0.7 devices on a) removed",
			},
		},
		"two things at once": {
			enginetest.State(h100("a"), enginetest.Job("x").Devices(16).Selector("rack", "r9")),
			[]string{"with 8 devices instead of 16 and without the node selector rack=r9"},
		},
		"a queue's limit": {
			enginetest.State(h100("a"), enginetest.Queue("q").Limit("nvidia.com/gpu", 4000), enginetest.Job("e").Queue("q").Devices(3).Preemptible().On("a"),
				enginetest.Job("x").Queue("q").Devices(2)),
			[]string{
				"with queue q's limit raised from 4 devices to 5 devices",
				"with a priority above 0",
				"with job/e (Standard, 3 devices on a) removed",
				"with 1 device instead of 2",
			},
		},
		"a queue's limit of a product": {
			enginetest.State(h100("a"), enginetest.Queue("q").Limit("nvidia.com/gpu:H100", 4000), enginetest.Job("e").Queue("q").Devices(3).Preemptible().On("a"),
				enginetest.Job("x").Queue("q").Devices(2)),
			[]string{
				"with queue q's limit raised from 4 devices of H100 to 5 devices of H100",
				"with a priority above 0",
				"with job/e (Standard, 3 devices on a) removed",
				"with 1 device instead of 2",
			},
		},
		"a limit and nodes": {
			enginetest.State(h100("a"), enginetest.Queue("q").Limit("nvidia.com/gpu", 4000), enginetest.Job("e").Devices(8).On("a"),
				enginetest.Job("x").Queue("q").Gang(2).Devices(8).Shape(func(s *cluster.Shape) { s.Need.Products = []string{"H100"} })),
			[]string{"with queue q's limit raised from 4 devices to 16 devices and with 2 more nodes of H100 × 8"},
		},
		"weaker isolation": {
			enginetest.State(h100("a"), enginetest.Job("x").Devices(2).Isolate(cluster.Isolation{GPU: cluster.GPUDeviceExclusive})),
			[]string{
				"with GPU isolation Shared instead of DeviceExclusive",
				"without GPU isolation",
			},
		},
		"a required affinity": {
			enginetest.State(h100("a"), enginetest.Job("x").Devices(2).Affinity(cluster.JobTerm{
				Selector: cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{"db"}}}})),
			[]string{"without the required affinity to jobs with app=db"},
		},
		"whole nodes": {
			enginetest.State(h100("a"), h100("b"), enginetest.Job("x").WholeNodes(3, "64Gi")),
			[]string{"with 2 replicas instead of 3", "with one more node of H100 × 8"},
		},
		"two workloads must be removed": {
			enginetest.State(h100("a"), enginetest.Job("e").Devices(2).Preemptible().On("a"), enginetest.Job("f").Devices(2).Preemptible().On("a"),
				enginetest.Job("x").Devices(7)),
			[]string{
				"with a priority above 0",
				"with one more node of H100 × 8",
				"with 4 devices instead of 7",
				"with job/e (Standard, 2 devices on a) and job/f (Standard, 2 devices on a) removed",
			},
		},
		"three workloads must be removed": {
			enginetest.State(h100("a"), enginetest.Job("e").Devices(2).Preemptible().On("a"), enginetest.Job("f").Devices(2).Preemptible().On("a"),
				enginetest.Job("g").Devices(2).Preemptible().On("a"), enginetest.Job("h").Preemptible().On("a"), enginetest.Job("x").Devices(8)),
			[]string{
				"with a priority above 0",
				"with one more node of H100 × 8",
				"with 2 devices instead of 8",
				"with job/e (Standard, 2 devices on a), job/f (Standard, 2 devices on a) and job/g (Standard, 2 devices on a) removed",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := ask(t, c.state, "job/x")
			if d := cmp.Diff(c.want, fitting(r)); d != "" {
				t.Error(d)
			}
		})
	}
}

// If no other change helps within the tries, a priority is tried with which the workload has its
// turn before one that the simulation placed.
func TestWhyOvertakes(t *testing.T) {
	state := enginetest.State(h100("a"), enginetest.Queue("q").Limit(gpu, 8000), enginetest.Job("e").Queue("q").Devices(8), enginetest.Job("x").Queue("q").Devices(8))
	r, err := Why(Question{Engine: explaintest.Engine(t), State: state, Workload: "job/x", Tries: 1})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"with a priority above 0"}, fitting(r)); d != "" {
		t.Error(d)
	}
}

// The report of a change that removes several workloads lists the workloads that are
// evicted in addition.
func TestSeveralRemovedWorkloadsAndAnEviction(t *testing.T) {
	r, text := ask(t, enginetest.State(h100("a"), enginetest.Queue("q"), enginetest.Job("p").Queue("q").Devices(2).Preemptible().On("a"),
		enginetest.Job("e").Queue("q").Devices(2).On("a"), enginetest.Job("f").Queue("q").Devices(2).On("a"), enginetest.Job("g").Queue("q").Devices(2).On("a"),
		enginetest.Job("x").Queue("q").Priority(5).Devices(8)), "job/x")
	for _, trial := range r.Trials {
		if trial.Kind != wire.EvictOthers || !trial.Fits {
			continue
		}
		for _, name := range []string{"job/e", "job/f", "job/g"} {
			if !strings.Contains(trial.Change, name+" (") {
				t.Errorf("%s is not removed by the change %q", name, trial.Change)
			}
		}
		if d := cmp.Diff([]string{"job/p"}, trial.Evicts); d != "" {
			t.Errorf("workloads that are evicted in addition (-want +got):\n%s\n%s", d, text)
		}
		return
	}
	t.Errorf("no change removes workloads:\n%s", text)
}

func TestWhyText(t *testing.T) {
	_, got := ask(t, enginetest.State(
		h100("a"), h100("b"), enginetest.Node("c").CPU(96, "512Gi").GPUs(4, "A100", "40Gi"),
		enginetest.Job("eval").Devices(2).On("a"),
		enginetest.Job("train").Gang(2).DeviceMemory(8, "72Gi").CPU(16000, "64Gi"),
	), "job/train")
	want := `
Job/train requests 2 × 8 devices with 72 GiB each, 16 cores and 64 GiB of
  memory.
Refused: GPUMemoryInUse. Waiting can help.

  3 nodes
  − 1  NodeResourcesFit  too few devices with 72 GiB free (a has 0 B)
  − 1  NodeResourcesFit  fewer than 8 devices (c has 4)
  = 1  fits one of the two tasks that must be placed together

Nothing can be reclaimed or preempted: no other workload that runs is
  preemptible.

It would fit (each change was tried):
  ✓ with 6 devices per task instead of 8
  ✓ with one more node of H100 × 8
  ✓ with 40 GiB per device instead of 72 GiB
  ✓ with job/eval (Standard, not preemptible, 2 devices on a) removed
`
	if d := cmp.Diff(want[1:], got); d != "" {
		t.Error(d)
	}
}

func TestWhyOfAnEmptyCluster(t *testing.T) {
	_, got := ask(t, enginetest.State(enginetest.Job("x").Devices(1)), "job/x")
	if !strings.Contains(got, "there are no nodes") {
		t.Error(got)
	}
}

func TestWhyOfSurplus(t *testing.T) {
	r, got := ask(t, enginetest.State(h100("a"), enginetest.Job("x").Gang(3).Min(1).Devices(4)), "job/x")
	if !strings.Contains(got, "Placed: 2 of 3 tasks, which is enough.") || !r.Refusal.Surplus {
		t.Error(got)
	}
	if len(fitting(r)) == 0 {
		t.Error("nothing helps:", got)
	}
}

// For every pending job in a random cluster with devices some change helps. The same question has the same
// answer twice.
func TestSomethingAlwaysHelps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		parts := []enginetest.Part{}
		for i := range rapid.IntRange(1, 4).Draw(rt, "nodes") {
			n := enginetest.Node(fmt.Sprintf("n%d", i)).CPU(rapid.IntRange(1, 16).Draw(rt, "cores"), "64Gi")
			n.GPUs(rapid.IntRange(0, 4).Draw(rt, "gpus"), rapid.SampledFrom([]string{"L4", "H100"}).Draw(rt, "product"), "24Gi")
			if rapid.Bool().Draw(rt, "labelled") {
				n.Label("rack", "r1")
			}
			if rapid.Bool().Draw(rt, "tainted") {
				n.Taint("t", "", cluster.NoSchedule)
			}
			parts = append(parts, n)
		}
		for i := range rapid.IntRange(0, 5).Draw(rt, "jobs") {
			j := enginetest.Job(fmt.Sprintf("j%d", i)).Gang(rapid.IntRange(1, 3).Draw(rt, "gang")).CPU(int64(rapid.IntRange(100, 8000).Draw(rt, "milli")), "1Gi")
			j.Devices(rapid.IntRange(0, 4).Draw(rt, "devices"))
			parts = append(parts, j)
		}
		x := enginetest.Job("x").Gang(rapid.IntRange(1, 3).Draw(rt, "gang")).CPU(int64(rapid.IntRange(100, 20000).Draw(rt, "milli")), "1Gi")
		if rapid.Bool().Draw(rt, "whole") {
			x.Devices(rapid.IntRange(0, 6).Draw(rt, "devices"))
		} else {
			x.DeviceMemory(rapid.IntRange(1, 3).Draw(rt, "devices"), rapid.SampledFrom([]string{"8Gi", "24Gi", "40Gi"}).Draw(rt, "memory"))
		}
		if rapid.Bool().Draw(rt, "selects") {
			x.Selector("rack", rapid.SampledFrom([]string{"r1", "r2"}).Draw(rt, "rack"))
		}
		state := enginetest.State(append(parts, x)...)
		copied := state.Clone()
		r, text := ask(t, state, "job/x")
		again, _ := ask(t, copied, "job/x")
		if d := cmp.Diff(explaintest.JSON(t, r), explaintest.JSON(t, again)); d != "" {
			rt.Fatal(d)
		}
		hasDevices := slices.ContainsFunc(state.Nodes(), func(n *cluster.Node) bool { return len(n.Devices) > 0 })
		switch {
		case r.Refusal == nil || len(fitting(r)) > 0:
		case hasDevices:
			rt.Fatalf("nothing helps:\n%s", text)
		case r.Remaining == nil || r.Remaining.Cure != "Grow": // no node could be copied
			rt.Fatalf("nodes with devices would help:\n%s", text)
		}
		if r.Conflict {
			rt.Fatalf("no conflict in it:\n%s", text)
		}
	})
}

// TestWhyPlacedInALargeCluster checks that the scores are the same if the earlier decisions are
// repeated as they were made, instead of decided again.
func TestWhyPlacedInALargeCluster(t *testing.T) {
	build := func() *cluster.State {
		return enginetest.State(h100("a"), h100("b"), h100("c"), enginetest.Job("p").Devices(2), enginetest.Job("q").Devices(3), enginetest.Job("x").Devices(2), enginetest.Job("z").Devices(1))
	}
	e := explaintest.Engine(t)
	full, err := Why(Question{Engine: e, State: build(), Workload: "job/x"})
	if err != nil {
		t.Fatal(err)
	}
	before, end := build(), build()
	simulation, err := sim.Simulate(e, end, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !repeatDecisions(before, simulation.Decisions, "job/x") || len(before.Pending()) != 1 {
		t.Fatal("the decisions before could not be repeated")
	}
	out, err := sim.Session(e, before, engine.Options{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	got := wire.NewPlacement(end.Job("job/x").Tasks()[0], false, &out.Decisions[0])
	if d := cmp.Diff(full.Placements, []wire.Placement{got}); d != "" {
		t.Errorf("(-in full +replayed)\n%s", d)
	}
}

// The report of a set of which all replicas are retired is about the first of them.
func TestWhyOfARetiredSet(t *testing.T) {
	s := enginetest.State(enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "L4", "24Gi"), enginetest.Job("m-0").Set("model/m", 0).ModelReplica(cluster.Binpack).Devices(1).On("a"))
	r, err := Why(Question{Engine: enginetest.Engine(enginetest.Fit()), State: s, Workload: "model/m"})
	if err != nil || r.Workload != "job/m-0" || !r.Notes.Retired {
		t.Errorf("report %+v, %v; want of job/m-0, which was retired", r, err)
	}
}
