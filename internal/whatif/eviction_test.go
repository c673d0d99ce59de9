package whatif

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain/explaintest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const gpu = "nvidia.com/gpu"

// clockAt returns the time that is the given number of minutes after the start of the tests.
func clockAt(minutes int64) int64 { return int64(time.Hour) + minutes*int64(time.Minute) }

// without returns the standard profile without the named plugins.
func without(names ...string) engine.Profile {
	return slices.DeleteFunc(standard.Profile(), func(c engine.PluginConfig) bool { return slices.Contains(names, c.Name) })
}

// guests returns a cluster in which queue guests holds six of eight devices, and its fair share
// is four.
func guests(more ...enginetest.Part) *cluster.State {
	parts := []enginetest.Part{
		enginetest.Node("a").CPU(64, "256Gi").GPUs(4, "H100", "80Gi"), enginetest.Node("b").CPU(64, "256Gi").GPUs(4, "H100", "80Gi"),
		enginetest.Queue("guests").Quota(gpu, 4000).MinRun(0, 10*time.Minute), enginetest.Queue("owners").Quota(gpu, 4000),
		enginetest.Job("eval").Queue("guests").Preemptible().Priority(10).Devices(2).On("a").Started(clockAt(0)),
		enginetest.Job("s1").Queue("guests").Preemptible().Devices(2).On("a").Started(clockAt(3)),
		enginetest.Job("s2").Queue("guests").Preemptible().Devices(2).On("b").Started(clockAt(6)),
		enginetest.Job("serve").Queue("owners").Devices(2).On("b"),
	}
	return enginetest.State(append(parts, more...)...)
}

// TestEvictionsInWords compares whole reports with the files in testdata. The reports are about
// workloads that are evicted, workloads for which others are evicted, and workloads for which
// nothing is evicted.
func TestEvictionsInWords(t *testing.T) {
	l4 := func(name string, n int) *enginetest.NodeBuilder {
		return enginetest.Node(name).CPU(16, "64Gi").GPUs(n, "L4", "24Gi")
	}
	half := func(name, queue string) *enginetest.JobBuilder {
		return enginetest.Job(name).Queue(queue).Preemptible().Share(1, 500)
	}
	tests := map[string]struct {
		state   *cluster.State
		profile engine.Profile
		now     int64
		ask     []string
	}{
		"reclaimed": {state: guests(enginetest.Job("x").Queue("owners").Devices(2)), now: clockAt(60), ask: []string{"s2", "x", "eval"}},
		"too-young": {state: guests(enginetest.Job("x").Queue("owners").Devices(2)), now: clockAt(8), ask: []string{"x"}},
		"beyond-its-share": {
			state: guests(enginetest.Job("x").Queue("owners").Preemptible().Devices(4)), now: clockAt(60), ask: []string{"x"},
		},
		"no-fair-share": {
			state: guests(enginetest.Job("x").Queue("owners").Devices(2)), profile: without("FairShare"), now: clockAt(60), ask: []string{"x"},
		},
		"no-adapters": {
			state:   guests(enginetest.Job("x").Queue("owners").Devices(2)),
			profile: without("Reclaim", "Preempt", "Consolidate"), now: clockAt(60), ask: []string{"x"},
		},
		"several-go": {
			state: enginetest.State(l4("a", 4), enginetest.Queue("q"), enginetest.Job("p1").Queue("q").Preemptible().Devices(1).On("a"),
				enginetest.Job("p2").Queue("q").Preemptible().Devices(1).On("a"), enginetest.Job("p3").Queue("q").Preemptible().Priority(5).Devices(2).On("a"),
				enginetest.Job("x").Queue("q").Priority(50).Devices(2)),
			ask: []string{"p1", "x"},
		},
		"the-first-would-not-do": {
			state: enginetest.State(l4("a", 4), enginetest.Queue("q"), enginetest.Job("small").Queue("q").Preemptible().Devices(1).On("a"),
				enginetest.Job("large").Queue("q").Preemptible().Priority(5).Devices(3).On("a"), enginetest.Job("x").Queue("q").Priority(50).Devices(3)),
			ask: []string{"large"},
		},
		"gang": {
			state: enginetest.State(l4("a", 2), l4("b", 2), enginetest.Queue("q"),
				enginetest.Job("g").Queue("q").Preemptible().Gang(2).Devices(2).On("a", "b"), enginetest.Job("x").Queue("q").Priority(1).Devices(2)),
			ask: []string{"g", "x"},
		},
		"surplus": {
			state: enginetest.State(l4("a", 2), l4("b", 2), enginetest.Queue("q"),
				enginetest.Job("g").Queue("q").Preemptible().Gang(2).Min(1).Devices(2).On("a", "b"), enginetest.Job("x").Queue("q").Priority(1).Devices(2)),
			ask: []string{"g"},
		},
		"weaker-tier": {
			state: enginetest.State(l4("a", 2), enginetest.Queue("night").Tier(cluster.TierScavenger), enginetest.Queue("day"),
				enginetest.Job("s").Queue("night").Preemptible().Devices(2).On("a"), enginetest.Job("x").Queue("day").Preemptible().Devices(2)),
			profile: without("Reclaim"), ask: []string{"s"},
		},
		"a-tree-of-queues": {
			state: enginetest.State(l4("a", 8), enginetest.Queue("left").Quota(gpu, 4000), enginetest.Queue("right").Quota(gpu, 4000),
				enginetest.Queue("l1").Parent("left"), enginetest.Queue("r1").Parent("right"),
				enginetest.Job("e").Queue("r1").Preemptible().Gang(8).Min(1).Devices(1).On("a", "a", "a", "a", "a", "a", "a", "a"),
				enginetest.Job("x").Queue("l1").Devices(1)),
			ask: []string{"e", "x"},
		},
		"cores-only": {
			state: enginetest.State(enginetest.Node("a").CPU(8, "64Gi"), enginetest.Queue("m").Quota(cluster.CPU, 4000), enginetest.Queue("n").Quota(cluster.CPU, 4000),
				enginetest.Job("e").Queue("m").Preemptible().Gang(4).Min(1).CPU(2000, "1Gi").On("a", "a", "a", "a"), enginetest.Job("x").Queue("n").CPU(2000, "1Gi")),
			ask: []string{"e"},
		},
		"fractions": {
			state: enginetest.State(l4("a", 1), enginetest.Queue("m").Quota(gpu, 500), enginetest.Queue("n").Quota(gpu, 500),
				half("h1", "m").On("a").Started(clockAt(1)), half("h2", "m").On("a").Started(clockAt(2)), half("x", "n")),
			ask: []string{"h2"},
		},
		"moved": {
			state: enginetest.State(l4("a", 2), l4("b", 2), enginetest.Queue("q"), enginetest.Job("m1").Queue("q").Preemptible().Devices(1).On("a"),
				enginetest.Job("m2").Queue("q").Devices(1).On("b"), enginetest.Job("x").Queue("q").Devices(2)),
			ask: []string{"m1", "x"},
		},
		"a-budget": {
			state: enginetest.State(l4("a", 2), enginetest.Queue("q"), enginetest.Budget("keep").Label("app", "db").MinAvailable(1),
				enginetest.Job("db").Label("app", "db").Queue("q").Preemptible().Devices(2).On("a"), enginetest.Job("x").Queue("q").Priority(1).Devices(2)),
			ask: []string{"x"},
		},
		"quota-would-help": {
			state: enginetest.State(l4("a", 4), enginetest.Queue("m").Quota(gpu, 1000), enginetest.Queue("n").Quota(gpu, 1000).Weight(3),
				enginetest.Job("e").Queue("n").Preemptible().Gang(3).Min(1).Devices(1).On("a", "a", "a"),
				enginetest.Job("f").Queue("m").Devices(1).On("a"), enginetest.Job("x").Queue("m").Preemptible().Devices(1)),
			ask: []string{"x"},
		},
		"guaranteed-beyond-its-quota": {
			state: enginetest.State(l4("a", 2), enginetest.Queue("m").Tier(cluster.TierGuaranteed).Quota(gpu, 1000), enginetest.Queue("n").Tier(cluster.TierGuaranteed).Quota(gpu, 1000),
				enginetest.Job("e1").Queue("m").Preemptible().Devices(1).On("a"), enginetest.Job("e2").Queue("m").Preemptible().Devices(1).On("a"), enginetest.Job("x").Queue("n").Devices(1)),
			profile: without("Reclaim"), ask: []string{"e1"},
		},
		"a-gang-makes-room-on-two-nodes": {
			state: enginetest.State(l4("a", 2), l4("b", 2), l4("c", 2), enginetest.Queue("q"), enginetest.Job("e").Queue("q").Preemptible().Devices(2).On("a"),
				enginetest.Job("f").Queue("q").Preemptible().Devices(2).On("b"), enginetest.Job("g").Queue("q").Preemptible().Priority(7).Devices(2).On("c"),
				enginetest.Job("x").Queue("q").Priority(50).Gang(2).Devices(2)),
			ask: []string{"e", "x"},
		},
		"surplus-evicts-nothing": {
			state: enginetest.State(l4("a", 2), enginetest.Queue("q"), enginetest.Job("e").Queue("q").Preemptible().Devices(2).On("a"),
				enginetest.Job("x").Queue("q").Priority(50).Gang(2).Min(1).Devices(2)),
			ask: []string{"x"},
		},
		"stale": {
			state: belowMinimum(enginetest.State(l4("a", 2), l4("b", 1), enginetest.Job("f").Devices(1).On("b"), enginetest.Job("g").Gang(2).Devices(2).On("a")), "job/g"),
			now:   clockAt(5), ask: []string{"g"},
		},
		"held": {
			state: releasing(enginetest.State(l4("a", 1), l4("b", 1), enginetest.Job("old").Devices(1).On("a"), enginetest.Job("x").Gang(2).Devices(1)), "job/old"),
			ask:   []string{"x"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.profile == nil {
				tt.profile = standard.Profile()
			}
			e, err := engine.New(standard.Registry(), tt.profile)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, id := range tt.ask {
				r, err := Why(Question{Engine: e, State: tt.state.Clone(), Workload: "job/" + id, Now: tt.now})
				if err != nil {
					t.Fatal(err)
				}
				r.Text(&got)
				got.WriteString("----\n")
			}
			file := filepath.Join("testdata", name+".txt")
			if os.Getenv("UPDATE_SCRIPTS") != "" {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Errorf("UPDATE_SCRIPTS=1 rewrites the file (-want +got):\n%s", d)
			}
		})
	}
}

// belowMinimum records that the gang has run below its minimum since the start of the clock.
func belowMinimum(s *cluster.State, id string) *cluster.State {
	return decided(s, cluster.Tear{Job: id, Since: clockAt(0)})
}

// releasing evicts the tasks of the job. They still hold their room.
func releasing(s *cluster.State, id string) *cluster.State {
	for _, t := range s.Job(id).Tasks() {
		decided(s, cluster.Evict{Task: t.Ref(), Attempt: t.Attempt + 1})
	}
	return s
}

func decided(s *cluster.State, c cluster.Change) *cluster.State {
	if err := s.Apply(cluster.Decided{Changes: []cluster.Change{c}}); err != nil {
		panic(err)
	}
	return s
}

// Reports about random clusters are the same each time, have no broken sentence, and list the
// evictions that the simulation decided.
func TestEvictionsOfRandomClusters(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var parts []enginetest.Part
		nodes := rapid.IntRange(1, 3).Draw(rt, "nodes")
		for i := range nodes {
			parts = append(parts, enginetest.Node(fmt.Sprintf("n%d", i)).CPU(8, "64Gi").GPUs(2, "L4", "24Gi"))
		}
		parts = append(parts, enginetest.Queue("top"), enginetest.Queue("q0").Parent("top").Quota(gpu, 2000).MinRun(0, 5), enginetest.Queue("q1").Tier(cluster.TierScavenger), enginetest.Queue("q2").MinRun(3, 0))
		job := func(name string) *enginetest.JobBuilder {
			j := enginetest.Job(name).Queue(fmt.Sprintf("q%d", rapid.IntRange(0, 2).Draw(rt, "queue"))).Priority(int32(rapid.IntRange(0, 2).Draw(rt, "priority"))).CPU(int64(rapid.IntRange(0, 3000).Draw(rt, "cores")), "1Gi")
			if rapid.Bool().Draw(rt, "preemptible") {
				j.Preemptible()
			}
			return j
		}
		for i := range nodes {
			for k := range rapid.IntRange(0, 2).Draw(rt, "running") {
				parts = append(parts, job(fmt.Sprintf("r%d-%d", i, k)).Share(1, 700).On(fmt.Sprintf("n%d", i)).Started(int64(rapid.IntRange(1, 9).Draw(rt, "started"))))
			}
		}
		for i := range rapid.IntRange(1, 3).Draw(rt, "pending") {
			parts = append(parts, job(fmt.Sprintf("p%d", i)).Gang(rapid.IntRange(1, 2).Draw(rt, "gang")).Devices(rapid.IntRange(0, 2).Draw(rt, "devices")))
		}
		state := enginetest.State(parts...)
		e := explaintest.Engine(t)
		simulation, err := sim.Simulate(e, state.Clone(), sim.Options{Now: 10})
		if err != nil {
			rt.Fatal(err)
		}
		for _, j := range state.Jobs() {
			var texts [2]string
			for i := range texts {
				r, err := Why(Question{Engine: e, State: state.Clone(), Workload: j.ID, Now: 10, Tries: 8})
				if err != nil {
					rt.Fatal(err)
				}
				var b strings.Builder
				r.Text(&b)
				texts[i] = b.String()
				evicted, displaced := 0, 0
				for _, d := range simulation.Decisions {
					if d.Action == engine.EvictTask && d.Task.Job == j.ID {
						evicted++
					}
					if d.Action == engine.EvictTask && d.For == j.ID {
						displaced++
					}
				}
				if got := [2]int{tasksOf(r.Evicted), tasksOf(r.Displaced)}; got != [2]int{evicted, displaced} {
					rt.Fatalf("%v tasks are evicted of it and for it, the report lists %v:\n%s", [2]int{evicted, displaced}, got, texts[i])
				}
			}
			for _, bad := range []string{"  .", ": .", "{", " ,", "()", " -1", "%!"} {
				if strings.Contains(texts[0], bad) {
					rt.Fatalf("%q in\n%s", bad, texts[0])
				}
			}
			if d := cmp.Diff(texts[0], texts[1]); d != "" {
				rt.Fatal(d)
			}
		}
	})
}

func tasksOf(list []wire.Eviction) int {
	n := 0
	for i := range list {
		n += len(list[i].Tasks)
	}
	return n
}

// TestRemovedOpenJob tries to remove a job whose tasks are reported one at a time, as pods are:
// the room of its tasks is free then.
func TestRemovedOpenJob(t *testing.T) {
	s := enginetest.State(h100("a"), enginetest.Job("eval").Devices(3))
	train := enginetest.Job("train").Gang(2).Devices(4).Build()
	tasks := train.Alternatives[0].Tasks
	train.Open, train.Alternatives[0].Tasks = true, nil
	changes := []cluster.Change{cluster.JobPut{Job: *train}}
	for _, task := range tasks {
		changes = append(changes, cluster.TaskPut{Job: train.ID, Task: *task}, cluster.TaskSeen{Task: cluster.TaskRef{Job: train.ID, Name: task.Name}, Node: "a"})
	}
	for _, c := range changes {
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	before := s.Digest()
	_, text := ask(t, s, "job/eval")
	if want := "✓ with job/train (Standard, not preemptible, 8 devices on a) removed"; !strings.Contains(text, want) {
		t.Errorf("the report does not have %q:\n%s", want, text)
	}
	if s.Digest() != before {
		t.Error("the State has changed")
	}
}
