package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// counting counts the calls of a filter.
func counting(judged *int) *policy {
	return &policy{name: "Counting", open: func(s *engine.Session) {
		s.Hooks.AddShapeFilter(nil, func(*cluster.Shape, *cluster.Node) *engine.Rejection {
			*judged++
			return nil
		})
	}}
}

func manyNodes(n int) []enginetest.Part {
	var parts []enginetest.Part
	for i := range n {
		parts = append(parts, enginetest.Node(fmt.Sprintf("n%04d", i)).CPU(8, "64Gi").GPUs(8, "A100", "80Gi"))
	}
	return parts
}

// TestOnlyChangedNodesAreJudgedAgain counts the calls of a filter: the index is fast because
// there are few.
func TestOnlyChangedNodesAreJudgedAgain(t *testing.T) {
	judged := 0
	e := enginetest.Engine(counting(&judged), fit())
	s := with(manyNodes(1000))
	steps := []struct {
		name string
		do   func()
		want int
	}{
		{"a new shape is judged on every node", func() {}, 1000},
		{"only the node of the last placement changed", func() {}, 1},
		{"a node that changed twice counts once", func() {
			for i := range 2 {
				apply(t, s, respecified(s.Node("n0500"), func(n *cluster.Node) { n.Labels["x"] = fmt.Sprint(i) }))
			}
		}, 2},
		{"a removed node is not judged", func() { apply(t, s, cluster.NodeGone{Name: "n0007"}) }, 1},
		{"a new node is judged", func() { apply(t, s, nodePut(enginetest.Node("new").CPU(8, "64Gi").GPUs(8, "A100", "80Gi"))) }, 2},
	}
	for i, step := range steps {
		step.do()
		judged = 0
		apply(t, s, jobPut(enginetest.Job(fmt.Sprint(i)).Devices(1)))
		out, err := e.Open(s, engine.Options{}).Run() // each step has a session of its own, since the index is kept between sessions
		if err != nil || len(out.Decisions) != 1 {
			t.Fatalf("%s: %v %+v", step.name, err, out)
		}
		if judged != step.want {
			t.Errorf("%s: %d nodes judged, want %d", step.name, judged, step.want)
		}
	}
}

func TestPublishStartsANewEpoch(t *testing.T) {
	judged, price := 0, 1.0
	var ssn *engine.Session
	priced := &policy{name: "Priced", open: func(s *engine.Session) {
		s.Hooks.Publish("Priced", uint64(price))
		s.Hooks.AddShapeScore(nil, func(_ *cluster.Shape, n *cluster.Node) float64 {
			judged++
			if n.Name == "b" {
				return price
			}
			return 5
		})
	}}
	e := enginetest.Engine(fit(), priced)
	s := with(twoNodes(), enginetest.Job("j"))
	place := func() string {
		ssn = e.Open(s, engine.Options{})
		stmt := ssn.Begin()
		defer stmt.Discard()
		if r := ssn.Place(stmt, s.Job("job/j")); r != nil {
			t.Fatal(r)
		}
		return s.Job("job/j").Tasks()[0].Node.Name
	}
	if got := place(); got != "a" {
		t.Errorf("placed on %s, want a", got)
	}
	price = 9
	if got := place(); got != "b" {
		t.Errorf("placed on %s, want b because of the new price", got)
	}
	judged = 0
	place()
	if judged > 4 { // for the node of the last placement, and for the parts of the score
		t.Errorf("with an unchanged price, the score was called %d times", judged)
	}
}

// TestAnotherStateDropsRankings: rankings of one State are not used for another.
func TestAnotherStateDropsRankings(t *testing.T) {
	e := enginetest.Engine(fit())
	first := with(twoNodes(), enginetest.Job("j").Devices(2))
	run(t, e, first)
	if diff := cmp.Diff(map[string]string{"job/k/worker-0": "c"}, where(run(t, e, enginetest.State(enginetest.Node("c").GPUs(2, "A100", "80Gi"), enginetest.Job("k").Devices(2))))); diff != "" {
		t.Error(diff)
	}
}

// TestManyShapesAreForgotten: the placements are right although the index drops rankings.
func TestManyShapesAreForgotten(t *testing.T) {
	s := with(twoNodes())
	e := enginetest.Engine(fit())
	for i := range 1100 {
		j := enginetest.Job(fmt.Sprint(i)).CPU(int64(1+i%1050), "1Mi").Build()
		apply(t, s, cluster.JobPut{Job: *j})
		if got := where(run(t, e, s)); len(got) != 1 {
			t.Fatalf("job %d was not placed", i)
		}
		apply(t, s, jobGone(j.ID))
	}
}

func TestTooManyReasonsAreAMistake(t *testing.T) {
	i := 0
	chatty := &policy{name: "Chatty", open: func(s *engine.Session) {
		s.Hooks.AddShapeFilter(nil, func(*cluster.Shape, *cluster.Node) *engine.Rejection {
			i++
			return &engine.Rejection{Reason: engine.Reason(fmt.Sprint("reason ", i))}
		})
	}}
	s := with(manyNodes(10))
	e := enginetest.Engine(chatty)
	var err error
	for j := 0; j < 5000 && err == nil; j++ {
		apply(t, s, jobPut(enginetest.Job(fmt.Sprint(j)).CPU(int64(j), "1Mi")))
		ssn := e.Open(s, engine.Options{})
		_, err = ssn.Run()
		apply(t, s, jobGone(fmt.Sprintf("job/%d", j)))
	}
	if err == nil {
		t.Error("a filter with reasons that are no constants was accepted")
	}
}

func TestCureString(t *testing.T) {
	for cure, want := range map[engine.Cure]string{0: "None", engine.Wait: "Wait", engine.Wait | engine.Evict: "Wait|Evict", engine.Grow | engine.Relax: "Grow|Relax"} {
		if got := cure.String(); got != want {
			t.Errorf("%d is %s, want %s", cure, got, want)
		}
	}
	if engine.AmountOf("cpu", 1).Unit != engine.Cores || engine.AmountOf("memory", 1).Unit != engine.Bytes || engine.AmountOf("x", 1).Unit != engine.Count {
		t.Error("AmountOf returns a wrong unit")
	}
}

// TestReusedSlots checks that a ranking is right after two slots got nodes with other names since
// it was last used. Neither of them may be compared with the key of its former node.
func TestReusedSlots(t *testing.T) {
	for _, search := range []engine.Search{engine.Indexed, engine.Twin} {
		e, s := enginetest.Engine(fit()), enginetest.State()
		node := func(name string, gpus int) cluster.Change {
			return cluster.NodePut{Node: *enginetest.Node(name).CPU(8, "32Gi").GPUs(gpus, "L4", "24Gi").Build()}
		}
		run := func() engine.Outcome {
			ssn := e.Open(s, engine.Options{Now: second, Search: search})
			defer ssn.Close()
			out, err := ssn.Run()
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		apply(t, s, node("n3", 1), node("n1", 1), node("n0", 1)) // slots 0, 1, 2
		apply(t, s, jobPut(enginetest.Job("a").Devices(1)))
		run() // a is on n0
		apply(t, s, jobGone("job/a"))
		apply(t, s, cluster.NodeGone{Name: "n3"}, node("n2", 1)) // slot 0
		apply(t, s, cluster.NodeGone{Name: "n0"}, node("n3", 1)) // slot 2
		apply(t, s, node("n2", 2))                               // slot 0 is the slot that changed last
		apply(t, s, jobPut(enginetest.Job("b").Devices(1)))
		out := run()
		if out.Decisions[0].Node != "n1" {
			t.Errorf("search %d: b is on %s, want n1", search, out.Decisions[0].Node)
		}
	}
}
