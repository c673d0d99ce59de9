package command

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/berth-project/berth/plugins/standard"
)

// TestSnapshotGivesTheSameAnswers simulates every scenario and every example from
// its manifests and from a snapshot of them, and compares bytes.
func TestSnapshotGivesTheSameAnswers(t *testing.T) {
	inputs, err := scenario.Files([]string{"../scenarios"})
	if err != nil {
		t.Fatal(err)
	}
	if len(inputs) < 100 {
		t.Fatalf("only %d scenarios were found", len(inputs))
	}
	for _, example := range []string{"models", "provision", "quickstart", "reclaim", "timeline"} {
		inputs = append(inputs, filepath.Join("../examples", example))
	}
	for _, in := range inputs {
		want, snapshot := answers(t, in, nil)
		got, again := answers(t, "-", snapshot)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: from manifests (-) and from a snapshot of them (+):\n%s", in, diff)
		}
		if !bytes.Equal(snapshot, again) {
			t.Errorf("%s: a snapshot of the snapshot differs from it", in)
		}
	}
}

// answers returns what simulate prints for the input in each format, and a snapshot
// of the initial state.
func answers(t *testing.T, in string, stdin []byte) (map[string]string, []byte) {
	t.Helper()
	var out, notes, snapshot bytes.Buffer
	p := &program{registry: standard.Registry(), stdin: bytes.NewReader(stdin), stdout: &out, stderr: &notes}
	fail := func(err error) {
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
	}
	b, err := p.load([]string{in}, &inputFlags{})
	fail(err)
	e, state, err := p.prepare(b)
	fail(err)
	fail(b.Snapshot(state, b.Now(), e.Parameters()).Write(&snapshot))
	simulation, err := sim.Simulate(e, state, sim.Options{Now: b.Now()})
	fail(err)
	answers := map[string]string{"notes": notes.String()}
	provisions := model.Provisions(b.NodeRequests(), state)
	results := explain.Results{Phrases: explain.PhrasesOf(e), State: state}
	for _, form := range []string{"table", "wide", "json", "yaml"} {
		out.Reset()
		fail(p.writeResult(results.Of(&simulation.Outcome, false), state, provisions, []string{"INPUT"}, simulateOptions{output: form}))
		answers[form] = out.String()
	}
	out.Reset()
	fail(p.writeEvents("-", nil, simulationEvents(simulation, results)))
	answers["events"] = out.String()
	return answers, snapshot.Bytes()
}

// TestSnapshotGivesTheSameCourse compares simulations over time, and the output of
// queues, from manifests and from a snapshot of them.
func TestSnapshotGivesTheSameCourse(t *testing.T) {
	for _, example := range []string{"models", "provision", "quickstart", "reclaim", "timeline"} {
		in := filepath.Join("../examples", example)
		snapshot := filepath.Join(t.TempDir(), "snapshot.json")
		want := []string{
			run(t, in, "simulate", in, "--cycles", "20", "--snapshot-out", snapshot),
			run(t, in, "queues", in),
		}
		got := []string{
			run(t, snapshot, "simulate", snapshot, "--cycles", "20"),
			run(t, snapshot, "queues", snapshot),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: from manifests (-) and from a snapshot of them (+):\n%s", example, diff)
		}
	}
}

// run returns what the command prints, with the name of its input replaced.
func run(t *testing.T, in string, args ...string) string {
	t.Helper()
	var text bytes.Buffer
	if code := Main(standard.Registry(), args, strings.NewReader(""), &text, &text); code != exitOK {
		t.Fatalf("%q: exit %d: %s", args, code, text.String())
	}
	return strings.ReplaceAll(text.String(), in, "INPUT")
}
