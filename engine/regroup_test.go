package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// crowded rejects nodes with two tasks or more, for several reasons, and has a cheap test for those with
// three or more.
func crowded() *policy {
	return &policy{name: "Crowded", open: func(s *engine.Session) {
		s.Hooks.AddShapeFilter(nil, func(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
			tasks := len(n.Tasks)
			if tasks < 2 {
				return nil
			}
			return &engine.Rejection{Reason: engine.Reason(fmt.Sprint("Crowded", tasks%3)), Cure: engine.Wait, Want: engine.Quantity{Value: int64(tasks)}}
		})
		engine.AddQuickReject(s.Hooks, func(_ *cluster.Shape, n *cluster.Node) bool { return len(n.Tasks) > 2 })
		engine.EqualNodes(s.Hooks)
	}}
}

// TestRegroup changes between an entry for each node and one for equal nodes, while jobs arrive and
// end and nodes are added, removed, replaced and relabelled. Twin sessions compare each decision and
// each refusal with a scan.
func TestRegroup(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		judged := 0
		e := enginetest.Engine(enginetest.Fit(), zoned(&judged, "zone"), crowded())
		s := zonedNodes(40)
		node := func(name string) cluster.Change {
			return nodePut(enginetest.Node(name).CPU(8, "64Gi").GPUs(1+random.IntN(8), "A100", "80Gi").Label("zone", string(rune('a'+random.IntN(3)))))
		}
		refused := 0
		for step := range 300 {
			switch random.IntN(6) {
			case 0:
				e.SetFewShapes(random.IntN(2) == 0)
			case 1:
				if n := s.Nodes(); len(n) > 20 {
					apply(t, s, cluster.NodeGone{Name: n[random.IntN(len(n))].Name})
				}
				apply(t, s, node(fmt.Sprintf("n%04d", random.IntN(60))))
			case 2:
				n := s.Nodes()[random.IntN(len(s.Nodes()))]
				apply(t, s, respecified(n, func(n *cluster.Node) { n.Labels["zone"] = string(rune('a' + random.IntN(3))) }))
			case 3:
				for range random.IntN(12) {
					if jobs := s.Jobs(); len(jobs) > 0 {
						apply(t, s, cluster.JobGone{Job: jobs[random.IntN(len(jobs))].ID})
					}
				}
			}
			for i := range random.IntN(5) {
				apply(t, s, jobPut(enginetest.Job(fmt.Sprintf("j%d-%d", step, i)).Devices(1+random.IntN(3))))
			}
			search := engine.Twin
			if random.IntN(3) == 0 {
				search = engine.Indexed
			}
			ssn := e.Open(s, engine.Options{Search: search})
			out, err := ssn.Run()
			if err == nil {
				err = ssn.Close()
			}
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			for _, r := range out.Refusals {
				refused++
				for _, a := range r.Attempts {
					if !slices.ContainsFunc(a.Counts, func(c engine.Tally) bool { return c.Nodes > 0 }) {
						t.Fatalf("seed %d, step %d: a refusal without a reason: %+v", seed, step, a)
					}
				}
			}
		}
		if refused == 0 {
			t.Errorf("seed %d: nothing was refused", seed)
		}
	}
}

// TestRanksWithoutOtherChange: nodes that are added together and removed again give all nodes new ranks.
func TestRanksWithoutOtherChange(t *testing.T) {
	var parts []enginetest.Part
	for i := range 100 {
		parts = append(parts, enginetest.Node(fmt.Sprintf("n%04d", i)).CPU(8+8*(1-i%2), "64Gi").GPUs(8, "A100", "80Gi"))
	}
	s := enginetest.State(parts...)
	e := enginetest.Engine(enginetest.Fit(), &policy{name: "Task", open: func(s *engine.Session) {
		s.Hooks.AddTaskFilter(nil, func(_ *cluster.Task, j *cluster.Job, n *cluster.Node) *engine.Rejection {
			if j.Priority == 7 || n.Name < "n0062" {
				return &engine.Rejection{Reason: "No"}
			}
			return nil
		})
	}})
	e.SetFewShapes(false)
	apply(t, s, jobPut(enginetest.Job("a").Devices(1)))
	run(t, e, s)
	for i := range 50 {
		apply(t, s, cluster.NodeGone{Name: fmt.Sprintf("n%04d", i)})
	}
	apply(t, s, jobPut(enginetest.Job("b").Devices(1).Priority(7)))
	run(t, e, s)
	apply(t, s, nodePut(enginetest.Node("x1")), nodePut(enginetest.Node("x2")))
	apply(t, s, cluster.NodeGone{Name: "x1"}, cluster.NodeGone{Name: "x2"})
	apply(t, s, jobPut(enginetest.Job("c").Devices(1)))
	run(t, e, s)
}

// TestRankOfRemovedNode: the best node is removed, and then the others get new ranks. Another node must
// not be compared with the rank that the removed one had.
func TestRankOfRemovedNode(t *testing.T) {
	node := func(name string, points int) cluster.Change {
		return nodePut(enginetest.Node(name).CPU(8, "64Gi").Label("points", fmt.Sprint(points)))
	}
	s := enginetest.State()
	var changes []cluster.Change
	for i := range 200 {
		points := 0
		if i == 10 {
			points = 50
		}
		changes = append(changes, node(fmt.Sprintf("n%03d", i), points))
	}
	apply(t, s, changes...)
	apply(t, s, node("n0085", 50))
	e := enginetest.Engine(enginetest.Fit(), &policy{name: "Task", open: func(s *engine.Session) {
		s.Hooks.AddShapeScore(nil, func(_ *cluster.Shape, n *cluster.Node) float64 {
			points, _ := strconv.Atoi(n.Labels["points"])
			return float64(points)
		})
		s.Hooks.AddTaskFilter(func(_ *cluster.Task, j *cluster.Job) bool { return j.Priority == 7 }, func(*cluster.Task, *cluster.Job, *cluster.Node) *engine.Rejection {
			return &engine.Rejection{Reason: "No"}
		})
	}})
	apply(t, s, jobPut(enginetest.Job("a").CPU(1000, "1Gi").Priority(7)))
	run(t, e, s)
	apply(t, s, cluster.NodeGone{Name: "n010"})
	changes = nil
	for i := range 50 {
		apply(t, s, cluster.NodeGone{Name: fmt.Sprintf("n%d", 100+i)})
		changes = append(changes, node(fmt.Sprintf("a%03d", i), 0))
	}
	apply(t, s, changes...)
	apply(t, s, respecified(s.Node("n003"), func(n *cluster.Node) { n.Labels["points"] = "50" }))
	apply(t, s, jobPut(enginetest.Job("c").CPU(1000, "1Gi")))
	run(t, e, s)
}
