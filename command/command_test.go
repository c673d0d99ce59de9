package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/plugins/standard"
)

// own is a plugin that is not part of Berth. Its hooks are given by the test.
type own struct{ open func(*engine.Session) }

func (own) Name() string                      { return "Own" }
func (o own) OnSessionOpen(s *engine.Session) { o.open(s) }

const clusterFile = `
apiVersion: berth.dev/v1alpha1
kind: SchedulerConfiguration
plugins: [{name: Own}]
---
apiVersion: berth.dev/v1alpha1
kind: Node
metadata: {name: n}
spec: {resources: {cpu: 8, memory: 16Gi}}
---
apiVersion: berth.dev/v1alpha1
kind: Job
metadata: {name: a}
spec: {tasks: [{name: t}]}
`

func runMain(t *testing.T, open func(*engine.Session), args ...string) (int, string, string) {
	t.Helper()
	r := standard.Registry()
	if err := r.RegisterPluginBuilder("Own", func(engine.Arguments) (engine.Plugin, error) { return own{open}, nil }); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := Main(r, args, strings.NewReader(clusterFile), &out, &errs)
	return code, out.String(), errs.String()
}

// TestUncalledHookIsNoted registers a hook for victims in a profile without a
// plugin that evicts for this purpose.
func TestUncalledHookIsNoted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	config := "apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nplugins: [{name: Own}, {name: Reclaim, disabled: true}]\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(s *engine.Session) {
		s.Hooks.AddReclaimable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict { return nil })
	}
	code, _, errs := runMain(t, open, "simulate", file)
	if code != exitOK || !strings.Contains(errs, "note: plugin Own: its hook AddReclaimable is never called: no plugin of the profile evicts victims for this purpose") || strings.Contains(errs, "FairShare") {
		t.Errorf("%d: %s", code, errs)
	}
}

func TestMainWithExternalPlugin(t *testing.T) {
	refuse := func(s *engine.Session) {
		s.Hooks.AddPreFilter(func(*cluster.Task, *cluster.Job) *engine.Rejection {
			return &engine.Rejection{Reason: "NotToday", Subject: "the weather"}
		})
	}
	code, out, _ := runMain(t, refuse, "simulate", "-", "--fail-on-pending")
	if code != exitNo || !strings.Contains(out, "job/a is pending: NotToday") || !strings.Contains(out, "not today the weather") {
		t.Errorf("%d: %s", code, out)
	}
	code, out, _ = runMain(t, refuse, "why", "a", "-")
	if code != exitOK || !strings.Contains(out, "Refused: NotToday. Waiting cannot help.") || !strings.Contains(out, "contradicts itself") {
		t.Errorf("%d: %s", code, out)
	}
	if code, out, _ = runMain(t, refuse, "plugins"); code != exitOK || !strings.Contains(out, "Own") {
		t.Errorf("%d: %s", code, out)
	}
}

func TestMainNeverPanics(t *testing.T) {
	code, out, errs := runMain(t, func(*engine.Session) { panic("oops") }, "simulate", "-")
	if code != exitInput || out != "" || !strings.Contains(errs, "plugin Own") || !strings.Contains(errs, "oops") {
		t.Errorf("a plugin panics: %d: %s%s", code, out, errs)
	}
	code, out, errs = runMain(t, func(s *engine.Session) { s.View = cluster.View{} }, "simulate", "-")
	if code != exitBug || out != "" || !strings.Contains(errs, "this is a bug") {
		t.Errorf("%d: %s%s", code, out, errs)
	}
}

func TestErrorNamesPluginThatBreaksItsContract(t *testing.T) {
	code, _, errs := runMain(t, func(s *engine.Session) {
		s.Hooks.AddShapeScore(nil, func(*cluster.Shape, *cluster.Node) float64 { return 101 })
	}, "simulate", "-")
	if code != exitInput || !strings.Contains(errs, "Own") {
		t.Errorf("%d: %s", code, errs)
	}
}

func TestNoColorsInFiles(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if isColorTerminal(f) {
		t.Error("a file is taken for a terminal with colors")
	}
}

func TestRankingsAreShown(t *testing.T) {
	state := enginetest.State(enginetest.Node("n").CPU(8, "16Gi"),
		enginetest.Job("chat-0").Set("model/chat", 1).CPU(1000, "1Gi").Priority(2).On("n"), enginetest.Job("chat-1").Set("model/chat", 1).CPU(1000, "1Gi").On("n"))
	keep := own{func(s *engine.Session) {
		s.Hooks.AddInstanceScore(func(j *cluster.Job) float64 { return float64(j.Priority) * 50 })
	}}
	e := enginetest.Engine(enginetest.Fit(), keep)
	simulation, err := sim.Simulate(e, state, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	results := explain.Results{Phrases: explain.PhrasesOf(e), State: state}
	for _, wide := range []bool{false, true} {
		var b bytes.Buffer
		(&table{w: &b, wide: wide}).rankings(results.Of(&simulation.Outcome, false))
		want := "model/chat: 1 of 2 replicas is kept\n  job/chat-0  1.0  kept\n  job/chat-1  0.0  retired\n\n"
		if wide {
			want = "model/chat: 1 of 2 replicas is kept\n  job/chat-0  1.0  kept     Own 1\n  job/chat-1  0.0  retired  Own 0\n\n"
		}
		if b.String() != want {
			t.Errorf("have\n%swant\n%s", b.String(), want)
		}
	}
	var events []string
	for e := range simulationEvents(simulation, results) {
		if e.Kind == "Retired" {
			events = append(events, e.Workload+" "+e.Reason+": "+e.Message)
		}
	}
	if len(events) != 1 || events[0] != "job/chat-1 ScaledDown: worth 0: Own 0" {
		t.Errorf("%q", events)
	}
}
