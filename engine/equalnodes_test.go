package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// zoned prefers the zone b, and counts how many nodes it scores.
func zoned(judged *int, labels ...string) *policy {
	return &policy{name: "Zoned", open: func(s *engine.Session) {
		s.Hooks.AddShapeScore(nil, func(_ *cluster.Shape, n *cluster.Node) float64 {
			*judged++
			if n.Labels["zone"] == "b" {
				return 100
			}
			return 50
		})
		engine.EqualNodes(s.Hooks, labels...)
	}}
}

func zonedNodes(n int) *cluster.State {
	var parts []enginetest.Part
	for i := range n {
		parts = append(parts, enginetest.Node(fmt.Sprintf("n%04d", i)).CPU(8, "64Gi").GPUs(8, "A100", "80Gi").Label("rack", fmt.Sprint(i)).Label("zone", string(rune('a'+i%3))))
	}
	return enginetest.State(parts...)
}

// TestEqualNodesAreJudgedOnce counts the calls of a score with EqualNodes.
func TestEqualNodesAreJudgedOnce(t *testing.T) {
	judged := 0
	e := enginetest.Engine(enginetest.Fit(), zoned(&judged, "zone"))
	s := zonedNodes(6000)
	place := func(name string, devices, want int, node string) {
		t.Helper()
		judged = 0
		apply(t, s, jobPut(enginetest.Job(name).Devices(devices)))
		out, err := e.Open(s, engine.Options{}).Run()
		if err != nil || len(out.Decisions) != 1 || out.Decisions[0].Node != node {
			t.Fatalf("%s: %v %+v", name, err, out.Decisions)
		}
		if judged -= 1; judged != want { // the decision has the score as well
			t.Errorf("%s: %d nodes were scored, want %d", name, judged, want)
		}
	}
	place("one of each zone", 1, 3, "n0001")
	place("only the changed node", 1, 1, "n0001")
	for i := range 2000 { // all nodes of zone a change in the same way
		n := s.Node(fmt.Sprintf("n%04d", 3*i))
		apply(t, s, respecified(n, func(n *cluster.Node) { n.Labels["zone"] = "b" }))
	}
	place("many nodes changed: two zones, and a node with tasks", 1, 3, "n0000")
	place("a new shape: two zones, and two nodes with tasks", 2, 4, "n0000")
}

// TestWrongEqualNodes: a Twin session names the plugin whose hook depends on more than it declared.
func TestWrongEqualNodes(t *testing.T) {
	judged := 0
	s := zonedNodes(9)
	apply(t, s, jobPut(enginetest.Job("j").Devices(1)))
	_, err := enginetest.Engine(enginetest.Fit(), zoned(&judged)).Open(s, engine.Options{Search: engine.Twin}).Run()
	if want := "plugin Zoned: a hook that is declared with EqualNodes has different answers for the nodes n0000 and n0001"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestEqualNodesWithoutHook(t *testing.T) {
	alone := &policy{name: "Alone", open: func(s *engine.Session) { engine.EqualNodes(s.Hooks) }}
	_, err := enginetest.Engine(enginetest.Fit(), alone).Open(zonedNodes(1), engine.Options{}).Run()
	if want := "plugin Alone: EqualNodes: the plugin registered no filter or score"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// TestSelectedDevices: equal nodes are not judged together for a shape that selects devices by
// their IDs.
func TestSelectedDevices(t *testing.T) {
	s := zonedNodes(9)
	apply(t, s, jobPut(enginetest.Job("j").Shape(func(shape *cluster.Shape) {
		shape.Need = cluster.Need{Devices: 1, Selected: []cluster.DeviceID{s.Node("n0005").Devices[3].ID}}
	})))
	judged := 0
	out, err := enginetest.Engine(enginetest.Fit(), zoned(&judged, "zone")).Open(s, engine.Options{Search: engine.Twin}).Run()
	if err != nil || len(out.Decisions) != 1 || out.Decisions[0].Node != "n0005" || out.Decisions[0].Claims[0].Device != 3 {
		t.Errorf("%v %+v", err, out)
	}
}
