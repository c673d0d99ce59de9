package ctl_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestDecisionsWithProfiles compares, for pods of two profiles, what kubectl berth simulate says
// with what berth simulate says about the snapshot, and with what berth-scheduler then does.
func TestDecisionsWithProfiles(t *testing.T) {
	w := newWorld(t)
	for i := range 6 {
		w.addNodes(node(fmt.Sprintf("node-%d", i), 2+2*(i%3)))
	}
	file := filepath.Join(t.TempDir(), "profiles.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: berth.dev/v1alpha1
kind: SchedulerConfiguration
plugins:
- {name: Consolidate, weight: 2}
profiles:
- schedulerName: berth-pack
  plugins:
  - {name: NodeResourcesFitPlus, arguments: {resources: {nvidia.com/gpu: {type: Pack, weight: 1}}}}
- schedulerName: berth-spread
  plugins:
  - {name: NodeResourcesFitPlus, arguments: {resources: {nvidia.com/gpu: {type: Spread, weight: 1}}}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 1))
	for _, p := range randomPods(r, "s", false) {
		p.Spec.SchedulerName = []string{"berth-pack", "berth-spread"}[r.IntN(2)]
		w.create(p)
	}
	said := placements(t, w.answer("simulate", "-o", "json", "--config", file))
	if len(said) < 5 {
		t.Errorf("only %d pods would be placed", len(said))
	}
	snapshot := filepath.Join(t.TempDir(), "snapshot.json")
	w.answer("snapshot", snapshot, "--config", file)
	if offline := placements(t, buildBerth(t)("simulate", snapshot, "-o", "json")); !maps.Equal(said, offline) {
		t.Errorf("berth simulate says\n%s\nand kubectl berth simulate says\n%s", show(offline), show(said))
	}
	defer w.Scheduler(w.cp.Kubeconfig(), "--leader-elect=false", "--config", file).Kill()
	w.eventually(w.undecided)
	if done := w.bound(); !maps.Equal(said, done) {
		t.Errorf("berth-scheduler did\n%s\nand kubectl berth simulate says\n%s", show(done), show(said))
	}
	if r := w.run("simulate", "--config", file, "--scheduler-name", "berth"); r.code != 2 {
		t.Errorf("with another scheduler name, the exit code is %d: %s", r.code, r.stderr)
	}
}
