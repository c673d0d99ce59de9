package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/noderesourcesfit"
)

// lonely rejects nodes that have a task, and counts the calls of its filter. Test is the cheap test.
func lonely(calls *int, test engine.QuickReject) *policy {
	return &policy{name: "Lonely", open: func(s *engine.Session) {
		s.Hooks.AddShapeFilter(nil, func(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
			if *calls++; len(n.Tasks) == 0 {
				return nil
			}
			return &engine.Rejection{Reason: "Company", Cure: engine.Wait, Want: engine.Quantity{Value: int64(len(n.Tasks))}}
		})
		engine.AddQuickReject(s.Hooks, test)
	}}
}

func hasTask(_ *cluster.Shape, n *cluster.Node) bool { return len(n.Tasks) > 0 }

// TestQuickReject counts the calls of a filter that has a cheap test: it is called for a node that
// became full only when the reason is needed, and the explanation is that of a scan.
func TestQuickReject(t *testing.T) {
	for _, search := range []engine.Search{engine.Indexed, engine.Twin} {
		calls := 0
		e := enginetest.Engine(enginetest.Fit(), lonely(&calls, hasTask))
		s := zonedNodes(3)
		place := func(name, node string, want int) {
			t.Helper()
			calls = 0
			apply(t, s, jobPut(enginetest.Job(name).Devices(1)))
			out, err := e.Open(s, engine.Options{Search: search}).Run()
			switch {
			case err != nil:
				t.Fatalf("%s: %v", name, err)
			case node == "":
				if len(out.Refusals) != 1 || len(out.Refusals[0].Attempts) != 1 {
					t.Fatalf("%s: %+v", name, out)
				}
				a := out.Refusals[0].Attempts[0]
				if len(a.Counts) != 1 || a.Counts[0].Reason != "Company" || a.Counts[0].Nodes != 3 || fmt.Sprint(missed(a.Nearest)) != "[n0000 n0001 n0002]" {
					t.Errorf("%s: counts %+v, nearest %+v", name, a.Counts, a.Nearest)
				}
			case len(out.Decisions) != 1 || out.Decisions[0].Node != node:
				t.Fatalf("%s: %+v", name, out.Decisions)
			}
			if search == engine.Indexed && want >= 0 && calls != want {
				t.Errorf("%s: the filter was called %d times, want %d", name, calls, want)
			}
		}
		place("all nodes are judged", "n0000", 3)
		place("n0000 is found to be full", "n0001", 0)
		place("n0001 is found to be full", "n0002", 0)
		place("the refusal says why of three nodes, and names them", "", 6)
		apply(t, s, jobGone("job/n0000 is found to be full"))
		place("the refused job is placed on n0001, and this one is refused", "n0001", -1)
	}
}

func missed(misses []engine.Miss) (out []string) {
	for _, m := range misses {
		out = append(out, m.Node)
	}
	return out
}

// TestWrongQuickReject: a Twin session names the plugin whose test rejects more than its filter.
func TestWrongQuickReject(t *testing.T) {
	calls := 0
	s := zonedNodes(1)
	e := enginetest.Engine(enginetest.Fit(), lonely(&calls, func(*cluster.Shape, *cluster.Node) bool { return true }))
	var err error
	for _, name := range []string{"first", "second", "third"} {
		apply(t, s, jobPut(enginetest.Job(name).Devices(1)))
		if _, err = e.Open(s, engine.Options{Search: engine.Twin}).Run(); err != nil {
			break
		}
		apply(t, s, jobGone("job/"+name))
	}
	if want := "plugin Lonely: the test of AddQuickReject returned true for node n0000, and the filter does not reject it"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestQuickRejectMisused(t *testing.T) {
	for name, test := range map[string]struct {
		open func(*engine.Session)
		want string
	}{
		"without a filter": {func(s *engine.Session) { engine.AddQuickReject(s.Hooks, hasTask) }, "call it after AddShapeFilter"},
		"after a static filter": {func(s *engine.Session) {
			s.Hooks.AddStaticFilter(nil, func(*cluster.Shape, *cluster.Node) *engine.Rejection { return nil })
			engine.AddQuickReject(s.Hooks, hasTask)
		}, "call it after AddShapeFilter"},
		"without a function": {func(s *engine.Session) {
			s.Hooks.AddShapeFilter(nil, func(*cluster.Shape, *cluster.Node) *engine.Rejection { return nil })
			engine.AddQuickReject(s.Hooks, nil)
		}, "the function is nil"},
	} {
		_, err := enginetest.Engine(enginetest.Fit(), &policy{name: "Alone", open: test.open}).Open(zonedNodes(1), engine.Options{}).Run()
		if err == nil || !strings.Contains(err.Error(), "plugin Alone: AddQuickReject: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, want %s", name, err, test.want)
		}
	}
}

// TestVerdictOfChangedNode keeps the function that Earmarks.WhenEmpty returns while tasks are placed:
// it has the same results as in a scan for nodes that became full since.
func TestVerdictOfChangedNode(t *testing.T) {
	for _, search := range []engine.Search{engine.Scan, engine.Twin, engine.Indexed} {
		var room func(*cluster.Node) int
		var got []int
		keep := &policy{name: "Keep", open: func(s *engine.Session) {
			s.Hooks.AddAdapter(func(_ *engine.Statement, _ *cluster.Job, r *engine.Refusal) *engine.Refusal {
				if room == nil {
					room = s.Earmarks.WhenEmpty(s.View.Job("job/b").Tasks()[0])
				}
				got = nil
				for _, n := range s.View.Nodes() {
					got = append(got, room(n))
				}
				return r
			})
		}}
		fit, err := noderesourcesfit.New(enginetest.Arguments("{}"))
		if err != nil {
			t.Fatal(err)
		}
		nodes := []enginetest.Part{enginetest.Node("n0").CPU(8, "64Gi").GPUs(2, "A100", "80Gi"), enginetest.Node("n1").CPU(8, "64Gi").GPUs(2, "A100", "80Gi")}
		s := enginetest.State(append(nodes, enginetest.Job("x").Devices(1).On("n0"), enginetest.Job("y").Devices(1).On("n1"),
			enginetest.Job("a").Devices(2).Created(1), enginetest.Job("b").Devices(1).Created(2), enginetest.Job("c").Devices(1).Created(3), enginetest.Job("d").Devices(2).Created(4))...)
		out, err := enginetest.Engine(fit, keep).Open(s, engine.Options{Search: search}).Run()
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Decisions) != 2 || len(out.Refusals) != 2 || fmt.Sprint(got) != "[2 2]" {
			t.Errorf("search %v: %d decisions, %d refusals, room for %v tasks on the empty nodes; want 2, 2 and [2 2]", search, len(out.Decisions), len(out.Refusals), got)
		}
	}
}
