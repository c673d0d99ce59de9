package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestParametersOutliveTheEngine checks that an engine that resumes another one has the parameters
// that plugins published there.
func TestParametersOutliveTheEngine(t *testing.T) {
	learns := func() *policy {
		return &policy{name: "Learns", open: func(s *engine.Session) {
			known, _ := s.Published("Learns")
			s.Hooks.Publish("Learns", known+1)
		}}
	}
	state := enginetest.State(enginetest.Node("n").CPU(1, "1Gi"))
	first := enginetest.Engine(learns())
	if _, ok := first.Open(state, engine.Options{}).Published("Other"); ok {
		t.Error("a plugin that published nothing has parameters")
	}
	first.Open(state, engine.Options{})
	parameters := first.Parameters()
	second := enginetest.Engine(learns())
	second.Resume(parameters)
	second.Open(state, engine.Options{})
	want := []map[string]uint64{{"Learns": 2}, {"Learns": 3}}
	if diff := cmp.Diff(want, []map[string]uint64{parameters, second.Parameters()}); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
}
