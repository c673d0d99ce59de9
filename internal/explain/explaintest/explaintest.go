// Package explaintest has helpers for the tests of packages explain and whatif.
package explaintest

import (
	"encoding/json"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/plugins/standard"
)

// Engine returns an engine with the standard profile.
func Engine(t testing.TB) *engine.Engine {
	t.Helper()
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Simulate simulates on the State with the standard profile, at the given time.
func Simulate(t *testing.T, state *cluster.State, now int64) *sim.Simulation {
	t.Helper()
	simulation, err := sim.Simulate(Engine(t), state, sim.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return simulation
}

// H100 returns a node with eight devices.
func H100(name string) *enginetest.NodeBuilder {
	return enginetest.Node(name).CPU(96, "512Gi").GPUs(8, "H100", "80Gi")
}

// JSON returns v as indented JSON.
func JSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
