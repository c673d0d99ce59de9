package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// prices is a plugin that gives each task of a job a cost, by the name of the job.
func prices(name string, each map[string]int64) *policy {
	return &policy{name: name, open: func(s *engine.Session) {
		s.Hooks.AddVictimCost(func(t *cluster.Task) int64 { return each[strings.TrimPrefix(t.Job.ID, "job/")] })
	}}
}

// crowd returns so many tasks that not all plans are compared. No plan evicts them.
func crowd() []enginetest.Part {
	parts := []enginetest.Part{enginetest.Node("crowd").CPU(8, "64Gi").GPUs(16, "A100", "80Gi")}
	for i := range 16 {
		parts = append(parts, low(fmt.Sprintf("crowd%d", i)).Priority(1000).On("crowd"))
	}
	return parts
}

// TestVictimCost checks which of several plans is chosen. Each case runs on a cluster on which all
// plans are compared, and on one that is searched node by node.
func TestVictimCost(t *testing.T) {
	scavenger := enginetest.Queue("scraps").Tier(cluster.TierScavenger)
	tests := map[string]struct {
		costs map[string]int64
		parts []enginetest.Part
		want  []string
	}{
		"cost before age": {map[string]int64{"y": 5, "x": 4},
			[]enginetest.Part{four("a"), low("x").Devices(2).On("a").Started(5), low("y").Devices(2).On("a").Started(7), enginetest.Job("new").Devices(2)}, []string{"x/worker-0"}},
		"age if the costs are equal": {map[string]int64{"y": 5, "x": 5},
			[]enginetest.Part{four("a"), low("x").Devices(2).On("a").Started(5), low("y").Devices(2).On("a").Started(7), enginetest.Job("new").Devices(2)}, []string{"y/worker-0"}},
		"cost between nodes": {map[string]int64{"x": 9, "y": 3},
			[]enginetest.Part{four("a"), four("b"), low("x").Devices(4).On("a"), low("y").Devices(4).On("b"), enginetest.Job("new").Devices(4)}, []string{"y/worker-0"}},
		"priority before cost": {map[string]int64{"x": 9},
			[]enginetest.Part{four("a"), low("x").Devices(2).Priority(1).On("a"), low("y").Devices(2).Priority(2).On("a"), enginetest.Job("new").Devices(2)}, []string{"x/worker-0"}},
		"tier before cost": {map[string]int64{"x": 9},
			[]enginetest.Part{four("a"), scavenger, low("x").Queue("scraps").Devices(2).On("a"), low("y").Devices(2).On("a"), enginetest.Job("new").Devices(2)}, []string{"x/worker-0"}},
		"the highest priority alone counts before cost": {map[string]int64{"x": 9, "y": 1, "z": 2},
			[]enginetest.Part{four("a"), enginetest.Job("firm").On("a").Devices(1), low("x").On("a"), low("y").Priority(1).On("a"), low("z").Priority(1).On("a"), enginetest.Job("new").Devices(2)}, []string{"y/worker-0", "z/worker-0"}},
		"cost before room that is freed": {map[string]int64{"x": 5, "y": 4},
			[]enginetest.Part{four("a"), low("x").Devices(1).On("a"), low("y").Devices(3).On("a"), enginetest.Job("new").Devices(1)}, []string{"y/worker-0"}},
		"cost before the number of tasks": {map[string]int64{"x": 1, "y": 1, "z": 3},
			[]enginetest.Part{four("a"), low("x").On("a"), low("y").On("a"), low("z").Devices(2).On("a"), enginetest.Job("new").Devices(2)}, []string{"x/worker-0", "y/worker-0"}},
		"one task that costs less than two": {map[string]int64{"x": 1, "y": 1, "z": 1},
			[]enginetest.Part{four("a"), low("x").On("a"), low("y").On("a"), low("z").Devices(2).On("a"), enginetest.Job("new").Devices(2)}, []string{"z/worker-0"}},
		"cost before surplus": {map[string]int64{"elastic": 3, "single": 2},
			[]enginetest.Part{four("a"), low("elastic").Gang(3).Min(1).On("a", "a", "a"), low("single").On("a"), enginetest.Job("new").Devices(1)}, []string{"single/worker-0"}},
		"a gang costs what its tasks cost together": {map[string]int64{"gang": 2, "single": 3},
			[]enginetest.Part{four("a"), four("b"), low("gang").Gang(2).Devices(4).On("a", "b"), four("c"), low("single").Devices(4).On("c"), enginetest.Job("new").Devices(4)}, []string{"single/worker-0"}},
		"victims for a gang": {map[string]int64{"gang": 1, "x": 3, "y": 3},
			[]enginetest.Part{four("a"), four("b"), low("gang").Gang(2).Devices(4).On("a", "b"), four("c"), low("x").Devices(4).On("c"), four("d"), low("y").Devices(4).On("d"),
				enginetest.Job("new").Gang(2).Devices(4)}, []string{"gang/worker-0", "gang/worker-1"}},
		"victims that are not needed are dropped": {map[string]int64{"x": 1, "y": 2, "z": 4},
			[]enginetest.Part{four("a"), low("x").On("a"), low("y").On("a"), low("z").Devices(2).On("a"), enginetest.Job("new").Devices(3)}, []string{"x/worker-0", "z/worker-0"}},
	}
	for name, tt := range tests {
		for _, large := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, large: %t", name, large), func(t *testing.T) {
				parts := tt.parts
				if large {
					parts = append(crowd(), parts...)
				}
				out := run(t, enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Preempt), prices("Prices", tt.costs)), enginetest.State(parts...))
				if d := cmp.Diff(tt.want, evicted(out)); d != "" {
					t.Errorf("evicted (-want +got):\n%s", d)
				}
			})
		}
	}
}

// TestVictimCostOfMoves checks which tasks move: of equally many tasks with equal priorities, those
// that cost least. A task with a lower priority moves before one that costs less.
func TestVictimCostOfMoves(t *testing.T) {
	tests := map[string]struct {
		x, y int32
		want []string
	}{
		"equal priorities":            {0, 0, []string{"y/worker-0"}},
		"the sum of priorities first": {0, 1, []string{"x/worker-0"}},
	}
	for name, tt := range tests {
		for _, large := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, large: %t", name, large), func(t *testing.T) {
				parts := []enginetest.Part{four("a"), four("b"), four("c"), low("x").Priority(tt.x).On("a"), low("y").Priority(tt.y).On("b"), enginetest.Job("firm").Devices(2).On("c"), enginetest.Job("new").Devices(4)}
				if large {
					parts = append(crowd(), parts...)
				}
				s := enginetest.State(parts...)
				out := run(t, enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Move), prices("Prices", map[string]int64{"x": 5, "y": 4})), s)
				if d := cmp.Diff(tt.want, evicted(out)); d != "" {
					t.Errorf("moved (-want +got):\n%s", d)
				}
			})
		}
	}
}

// TestVictimCostsAreWeightedAndAdded checks that the costs of two plugins are multiplied by the
// weights of the plugins and added, and that the PlanSearch has the sum.
func TestVictimCostsAreWeightedAndAdded(t *testing.T) {
	registry := engine.NewRegistry()
	var profile engine.Profile
	for _, p := range []struct {
		plugin engine.Plugin
		weight int64
	}{
		{fit(), 1}, {enginetest.AllowAllVictims(), 1}, {roomMaker(engine.Preempt), 1},
		{prices("First", map[string]int64{"x": 10, "y": 1}), 1}, {prices("Second", map[string]int64{"x": 1, "y": 5}), 3},
	} {
		if err := registry.RegisterPluginBuilder(p.plugin.Name(), func(engine.Arguments) (engine.Plugin, error) { return p.plugin, nil }); err != nil {
			t.Fatal(err)
		}
		profile = append(profile, engine.PluginConfig{Name: p.plugin.Name(), Weight: p.weight})
	}
	e, err := engine.New(registry, profile)
	if err != nil {
		t.Fatal(err)
	}
	s := e.Open(enginetest.State(four("a"), four("b"), low("x").Devices(4).On("a"), low("y").Devices(4).On("b"), enginetest.Job("new").Devices(4)), engine.Options{Explain: true})
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"x/worker-0"}, evicted(out)); d != "" {
		t.Fatalf("evicted (-want +got):\n%s", d)
	}
	w := out.Decisions[0].PlanSearch
	if w.Cost.VictimCost != 13 || len(w.Options) != 2 || w.Options[1].Cost.VictimCost != 16 || len(w.Rivals) != 2 || w.Rivals[0].VictimCost != 13 || w.Rivals[1].VictimCost != 16 {
		t.Errorf("plan search %+v", w)
	}
}

// TestVictimCostOutOfRange checks that a cost that is not between 0 and MaxVictimCost, or a panic,
// fails the session with an error that names the plugin.
func TestVictimCostOutOfRange(t *testing.T) {
	tests := map[string]struct {
		cost  func() int64
		error string
	}{
		"negative":  {func() int64 { return -1 }, "plugin Prices: a cost of -1 for task job/x/worker-0 is not between 0 and 1000000"},
		"too large": {func() int64 { return engine.MaxVictimCost + 1 }, "plugin Prices: a cost of 1000001 for task job/x/worker-0 is not between 0 and 1000000"},
		"panic":     {func() int64 { panic("boom") }, "plugin Prices: AddVictimCost panicked at victimcost_test.go"},
		"the most":  {func() int64 { return engine.MaxVictimCost }, ""},
	}
	for name, tt := range tests {
		for _, large := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, large: %t", name, large), func(t *testing.T) {
				parts := []enginetest.Part{four("a"), low("x").Devices(4).On("a"), enginetest.Job("new").Devices(4)}
				if large {
					parts = append(crowd(), parts...)
				}
				state := enginetest.State(parts...)
				frail := &policy{name: "Prices", open: func(s *engine.Session) {
					s.Hooks.AddVictimCost(func(t *cluster.Task) int64 {
						if t.Job.ID != "job/x" {
							return 0
						}
						return tt.cost()
					})
				}}
				out, err := enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Preempt), frail).Open(state, engine.Options{}).Run()
				if tt.error == "" {
					if err != nil || len(evicted(out)) != 1 {
						t.Errorf("%v, evicted %v", err, evicted(out))
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), tt.error) {
					t.Errorf("%v, want %s", err, tt.error)
				}
				if len(out.Decisions) != 0 {
					t.Errorf("decided %v", out.Decisions)
				}
			})
		}
	}
}

// TestCheapestVictims draws clusters that are searched node by node and are full of tasks with one
// device each. It computes the cheapest plan in another way: on each node the lowest priority up to
// which there are enough tasks, and of the tasks up to that priority those that cost least.
func TestCheapestVictims(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var parts []enginetest.Part
		costs := map[string]int64{}
		wants := rapid.IntRange(1, 4).Draw(rt, "wants")
		highest, least := int32(1000), int64(0)
		nodes := rapid.IntRange(4, 12).Draw(rt, "nodes")
		if rapid.IntRange(0, 4).Draw(rt, "many") == 0 {
			nodes += 80 // more nodes of a class than are opened one by one
		}
		for i := range nodes {
			n := fmt.Sprintf("n%02d", i)
			parts = append(parts, four(n))
			type victim struct {
				priority int32
				cost     int64
			}
			var all []victim
			for k := range 4 {
				name := fmt.Sprintf("%s-%d", n, k)
				v := victim{int32(rapid.IntRange(0, 2).Draw(rt, "priority")), int64(rapid.IntRange(0, 20).Draw(rt, "cost"))}
				all, costs[name] = append(all, v), v.cost
				parts = append(parts, low(name).Priority(v.priority).On(n).Started(int64(rapid.IntRange(1, 9).Draw(rt, "started"))))
			}
			slices.SortFunc(all, func(a, b victim) int { return int(a.priority - b.priority) })
			bound := all[wants-1].priority
			all = slices.DeleteFunc(all, func(v victim) bool { return v.priority > bound })
			slices.SortFunc(all, func(a, b victim) int { return int(a.cost - b.cost) })
			sum := int64(0)
			for _, v := range all[:wants] {
				sum += v.cost
			}
			if bound < highest || bound == highest && sum < least {
				highest, least = bound, sum
			}
		}
		state := enginetest.State(append(parts, enginetest.Job("new").Devices(wants))...)
		out, err := enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Preempt), prices("Prices", costs)).Open(state, engine.Options{Search: engine.Twin}).Run()
		if err != nil {
			rt.Fatal(err)
		}
		w := out.Decisions[0].PlanSearch
		if w.Cost.Highest != highest || w.Cost.VictimCost != least || w.Cost.Beyond != 0 {
			rt.Fatalf("cost %+v, want priority %d and cost %d", w.Cost, highest, least)
		}
	})
}
