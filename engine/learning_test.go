package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestNotesOfALearner: nodes are scored again if parameters change, but not if only notes change.
func TestNotesOfALearner(t *testing.T) {
	var parameters []int64
	scored := 0
	learns := &policy{name: "Learns", open: func(s *engine.Session) {
		s.Hooks.AddLearner(1, func([]int64) {}, func() []int64 { return parameters })
		s.Hooks.AddShapeScore(nil, func(*cluster.Shape, *cluster.Node) float64 {
			scored++
			return 50
		})
	}}
	e := enginetest.Engine(enginetest.Fit(), learns)
	var parts []enginetest.Part
	for _, name := range []string{"a", "b", "c", "d"} {
		parts = append(parts, enginetest.Node(name).CPU(8, "64Gi"))
	}
	state := enginetest.State(parts...)
	place := func(job string, values ...int64) int {
		t.Helper()
		if err := state.Apply(cluster.JobPut{Job: *enginetest.Job(job).CPU(1000, "1Gi").Build()}); err != nil {
			t.Fatal(err)
		}
		parameters, scored = values, 0
		s := e.Open(state, engine.Options{})
		out, err := s.Run()
		if err != nil || len(out.Decisions) != 1 {
			t.Fatal(err, out.Decisions)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return scored
	}
	place("first", 1, 7)
	same, noted, changed := place("second", 1, 7), place("third", 2, 7), place("fourth", 3, 8)
	if noted != same || changed < same+3 {
		t.Errorf("nodes were scored %d times with the same parameters, %d times with other notes and %d times with other parameters", same, noted, changed)
	}
}

// TestNewParametersAndChangedNodes: nodes change while parameters change, and rankings of several shapes
// are used after different times. Nodes that were judged with the new parameters are not scored again, and
// all others are. Twin sessions compare every decision with a scan.
func TestNewParametersAndChangedNodes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	parameter := int64(0)
	learns := &policy{name: "Learns", open: func(s *engine.Session) {
		s.Hooks.AddLearner(0, func(values []int64) {
			if parameter = 0; len(values) > 0 {
				parameter = values[0]
			}
		}, func() []int64 {
			if random.IntN(4) > 0 {
				return nil
			}
			parameter = int64(random.IntN(5))
			return []int64{parameter}
		})
		s.Hooks.AddShapeScore(nil, func(shape *cluster.Shape, n *cluster.Node) float64 {
			free := n.Ledger(cluster.CPU).Free() / 1000
			return float64((parameter*31 + free*(17+parameter) + shape.Resources.Of(cluster.CPU)/1000) % 101)
		})
		engine.EqualNodes(s.Hooks)
	}}
	e := enginetest.Engine(enginetest.Fit(), learns)
	var parts []enginetest.Part
	for i := range 40 {
		parts = append(parts, enginetest.Node(fmt.Sprintf("node-%02d", i)).CPU(8+4*(i%3), "64Gi"))
	}
	state := enginetest.State(parts...)
	apply := func(c cluster.Change) {
		t.Helper()
		if err := state.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	var running []string
	for step := range 600 {
		job := enginetest.Job(fmt.Sprintf("job-%03d", step)).CPU(int64(1+random.IntN(5))*1000, "1Gi").Build()
		apply(cluster.JobPut{Job: *job})
		if running = append(running, job.ID); len(running) > 60 {
			i := random.IntN(len(running))
			apply(cluster.JobGone{Job: running[i]})
			running = append(running[:i], running[i+1:]...)
		}
		search := engine.Indexed // most sessions, because a scan judges nodes too
		if step%3 == 0 {
			search = engine.Twin
		}
		s := e.Open(state, engine.Options{Search: search})
		_, err := s.Run()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
