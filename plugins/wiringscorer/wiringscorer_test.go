package wiringscorer_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/noderesourcesfit"
	"github.com/berth-project/berth/plugins/wiringscorer"
)

func profile(t testing.TB) *engine.Engine {
	r := engine.NewRegistry()
	for name, build := range map[string]engine.PluginBuilder{wiringscorer.Name: wiringscorer.New, noderesourcesfit.Name: noderesourcesfit.New} {
		if err := r.RegisterPluginBuilder(name, build); err != nil {
			t.Fatal(err)
		}
	}
	e, err := engine.New(r, engine.Profile{{Name: noderesourcesfit.Name}, {Name: wiringscorer.Name, Weight: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func node(name string, devices int) *enginetest.NodeBuilder {
	return enginetest.Node(name).CPU(64, "640Gi").GPUs(devices, "A100", "80Gi")
}

// run places job/j, and returns the scores of the nodes that are feasible for it.
func run(t *testing.T, parts ...enginetest.Part) map[string]float64 {
	t.Helper()
	s := profile(t).Open(enginetest.State(parts...), engine.Options{Search: engine.Twin, Explain: true})
	defer s.Close()
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	scores := map[string]float64{}
	for _, d := range out.Decisions {
		for _, c := range d.Candidates {
			for _, p := range c.Score.Parts {
				scores[c.Node] = p.Score
			}
		}
	}
	return scores
}

func TestScore(t *testing.T) {
	four := func() *enginetest.NodeBuilder { return node("n", 8).Links("a", "a", "a", "a", "b", "b", "b", "b") }
	j := func(devices int) *enginetest.JobBuilder { return enginetest.Job("j").Devices(devices) }
	held := func(devices int) *enginetest.JobBuilder { return enginetest.Job("x").Devices(devices).On("n") }
	tests := map[string]struct {
		parts []enginetest.Part
		want  float64
	}{
		"a whole island":                  {[]enginetest.Part{four(), j(4)}, 6},
		"a part of an idle island":        {[]enginetest.Part{four(), j(2)}, 4},
		"one device of an idle island":    {[]enginetest.Part{four(), j(1)}, 0},
		"one device of a broken island":   {[]enginetest.Part{four(), held(1), j(1)}, 2},
		"two devices of a broken island":  {[]enginetest.Part{four(), held(1), j(2)}, 6},
		"two islands, one of them whole":  {[]enginetest.Part{four(), held(1), j(7)}, 2},
		"two idle islands, one is broken": {[]enginetest.Part{four(), j(5)}, 0},
		"one PCIe root":                   {[]enginetest.Part{node("n", 4).PCIe("x", "x", "y", "y"), j(2)}, 5},
		"some are not connected":          {[]enginetest.Part{node("n", 4).Links("a", "a"), j(1)}, 2},
		"all, connected or not":           {[]enginetest.Part{node("n", 4).Links("a", "a"), j(4)}, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(map[string]float64{"n": tt.want}, run(t, tt.parts...)); diff != "" {
				t.Errorf("scores (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOtherNodes: beside a node with islands, a node without any counts as one island. If no node
// has islands, there are no scores.
func TestOtherNodes(t *testing.T) {
	wired := node("wired", 4).Links("a", "a", "b", "b")
	plain, linked, single := node("plain", 4), node("linked", 4).Links("c", "c", "c", "c"), node("single", 1)
	job := enginetest.Job("j").Devices(1)
	if diff := cmp.Diff(map[string]float64{"wired": 0, "plain": 0, "linked": 0, "single": 2}, run(t, wired, plain, linked, single, job)); diff != "" {
		t.Errorf("one device (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]float64{"wired": 6, "plain": 0, "linked": 4}, run(t, wired, plain, linked, single, enginetest.Job("j").Devices(2))); diff != "" {
		t.Errorf("two devices (-want +got):\n%s", diff)
	}
	numa := node("numa", 4).NUMA(0, 0, 1, 1)
	if diff := cmp.Diff(map[string]float64{"wired": 6, "numa": 4}, run(t, wired, numa, enginetest.Job("j").Devices(2))); diff != "" {
		t.Errorf("NUMA nodes (-want +got):\n%s", diff)
	}
	if got := run(t, plain, linked, single, numa, job); len(got) != 0 {
		t.Errorf("scores of nodes without islands: %v", got)
	}
}

// TestTwin: the index and a scan of all nodes decide the same while jobs arrive and end.
func TestTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		roll := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "roll") }
		e, state := profile(t), cluster.NewState()
		apply := func(c cluster.Change) {
			if err := state.Apply(c); err != nil {
				rt.Fatal(err)
			}
		}
		for i := range 1 + roll(4) {
			n := node(fmt.Sprint("n", i), 4)
			if roll(3) > 0 {
				n.Links([]string{"", "a"}[roll(2)], "a", "b", []string{"b", "a"}[roll(2)])
			}
			apply(cluster.NodePut{Node: *n.Build()})
		}
		for step := range 12 {
			job := enginetest.Job(fmt.Sprint("j", step)).Devices(1 + roll(4))
			if roll(3) == 0 {
				job.Shape(func(s *cluster.Shape) { s.Need.SameLink = true })
			}
			apply(cluster.JobPut{Job: *job.Build()})
			s := e.Open(state, engine.Options{Search: engine.Twin})
			if _, err := s.Run(); err != nil {
				rt.Fatal(err)
			}
			s.Close()
			if roll(3) == 0 {
				apply(cluster.JobGone{Job: fmt.Sprint("job/j", roll(step+1))})
			}
			if err := state.Audit(); err != nil {
				rt.Fatal(err)
			}
		}
	})
}
