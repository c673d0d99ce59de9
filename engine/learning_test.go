package engine_test

import (
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
