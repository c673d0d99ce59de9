package migration

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
)

const examples = "../../examples/migrate"

// convert converts a text. It returns the manifests and the notes, one in each line.
func convert(t testing.TB, text string) (out, notes string, err error) {
	t.Helper()
	r, err := Convert(&manifest.Loader{Stdin: strings.NewReader(text)}, []string{"-"})
	if err != nil {
		return "", "", err
	}
	var w bytes.Buffer
	if err := r.Write(&w); err != nil {
		t.Fatal(err)
	}
	return w.String(), strings.Join(r.Notes, "\n"), nil
}

// accept reads the manifests together with the nodes of the examples.
func accept(t testing.TB, text string) (*manifest.Bundle, *cluster.State) {
	t.Helper()
	nodes, err := os.ReadFile(filepath.Join(examples, "nodes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := manifest.Parse("output.yaml", []byte(string(nodes)+"\n---\n"+text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	state, err := b.State()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return b, state
}

// simulate is like accept, and simulates the cluster.
func simulate(t testing.TB, text string) *sim.Simulation {
	t.Helper()
	b, state := accept(t, text)
	e, err := scenario.Engine(standard.Registry(), b)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.Simulate(e, state, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestExamplesRun checks that the manifests that are made of each example are placed on its nodes.
func TestExamplesRun(t *testing.T) {
	for file, placed := range map[string]int{"kaito.yaml": 3, "gpustack.json": 3, "kai.yaml": 0, "volcano.yaml": 0, "kueue.yaml": 0} {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(examples, file))
			if err != nil {
				t.Fatal(err)
			}
			out, _, err := convert(t, string(data))
			if err != nil {
				t.Fatal(err)
			}
			s := simulate(t, out)
			if len(s.Decisions) != placed || len(s.Refusals) > 0 {
				t.Errorf("%d decisions and %d refusals, want %d placed", len(s.Decisions), len(s.Refusals), placed)
			}
			again, _, err := convert(t, string(data))
			if err != nil || again != out {
				t.Errorf("another output the second time (%v):\n%s", err, cmp.Diff(out, again))
			}
		})
	}
}

// TestQueuesBindJobs checks that quotas of the other scheduler bind in the same way: a job within the
// quota is placed, and one above it is refused.
func TestQueuesBindJobs(t *testing.T) {
	job := func(queue, devices string) string {
		return "\n---\napiVersion: berth.dev/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {queue: " + queue + ", tasks: [{name: w, devices: {count: " + devices + ", products: [NVIDIA-H100-80GB-HBM3]}}]}\n"
	}
	for file, x := range map[string]struct{ queue, fits, exceeds string }{
		"kai.yaml": {"language", "4", "5"}, "volcano.yaml": {"research", "4", "5"}, "kueue.yaml": {"ads", "4", "5"},
	} {
		data, err := os.ReadFile(filepath.Join(examples, file))
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := convert(t, string(data))
		if err != nil {
			t.Fatal(err)
		}
		if s := simulate(t, out+job(x.queue, x.fits)); len(s.Decisions) != 1 {
			t.Errorf("%s: %s devices are not placed", file, x.fits)
		}
		if s := simulate(t, out+job(x.queue, x.exceeds)); len(s.Decisions) != 0 {
			t.Errorf("%s: %s devices are placed", file, x.exceeds)
		}
	}
}

// TestNothingIsDropped adds a field to each object of each example, one at a time. Each must be noted,
// or be an error.
func TestNothingIsDropped(t *testing.T) {
	for _, file := range []string{"kaito.yaml", "kai.yaml", "volcano.yaml", "kueue.yaml"} {
		data, err := os.ReadFile(filepath.Join(examples, file))
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		tried := 0
		for i := range text {
			if text[i] != '{' || strings.HasPrefix(text[i:], "{}") {
				continue
			}
			before := text[:i]
			line := before[strings.LastIndexByte(before, '\n')+1:]
			doc := before[max(0, strings.LastIndex(before, "\n---\n")):]
			if strings.HasPrefix(line, "metadata:") || strings.Contains(line, "annotations:") || strings.Contains(doc, "batch.volcano.sh") || strings.Contains(doc, "\ntuning:") || strings.Contains(line, "abels:") {
				continue // these are labels, ignored, noted as a whole, or of a kind that is not converted
			}
			tried++
			out, notes, err := convert(t, before+"{surprise: 1, "+text[i+1:])
			if err == nil && !strings.Contains(out+notes, "surprise") { // it may be the name of a resource
				t.Errorf("%s: no note about a new field after %q:\n%s", file, line, notes)
			}
		}
		if tried < 2 {
			t.Errorf("%s: only %d places were tried", file, tried)
		}
	}
	_, notes, err := convert(t, "name: m\nsource: huggingface\nhuggingface_repo_id: microsoft/phi-4\nsurprise: {a: 1}\ngpu_selector: {more: 1}\n")
	if err != nil || !strings.Contains(notes, "model/m: surprise: ") || !strings.Contains(notes, "model/m: gpu_selector.more: ") {
		t.Errorf("%v: %s", err, notes)
	}
}

// TestBadInput checks what is refused, and where.
func TestBadInput(t *testing.T) {
	const kai = "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: q}\n"
	for text, want := range map[string]string{
		"":                                    "-: there is nothing to convert: no object was found",
		"---\n---\n":                          "-: there is nothing to convert: no object was found",
		"a: [":                                "<stdin>:1: this is not YAML",
		"5":                                   "<stdin>:1:1: want an object, have the number 5",
		"[1, 2]":                              "<stdin>:1:2: want an object, have the number 1",
		"a: 1":                                "<stdin>:1:1: kind is missing, and this is no model of GPUStack",
		"{items: [], kind: List}":             "-: there is nothing to convert",
		"{kind: Pod, apiVersion: v1}":         "-: none of the objects can be converted: 1 v1 Pod; berth migrate converts",
		kai + "spec: {priority: x}":           `<stdin>:4:18: spec.priority: want a whole number, have "x"`,
		kai + "spec: {priority: 99999999999}": "<stdin>:4:18: spec.priority: 99999999999 is too large",
		kai + "spec: {resources: {gpu: {quota: [1]}}}":          "<stdin>:4:33: spec.resources.gpu.quota: want a quantity",
		kai + "spec: {a: 1, a: 2}":                              `duplicate key "a"`,
		"kind: Queue\napiVersion: scheduling.run.ai/v2\n":       "metadata: the object needs a name",
		"name: m\nsource: huggingface\nreplicas: many":          `replicas: want a whole number, have "many"`,
		"name: m\nsource: huggingface\nbackend_parameters: --x": "backend_parameters: want a list",
		"apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: q}\nspec: {resourceGroups: {a: 1}}": "spec.resourceGroups: want a list, have an object",
	} {
		if _, _, err := convert(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestLists checks that lists of all kinds are read.
func TestLists(t *testing.T) {
	item := "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}, spec: {weight: 2}}"
	want, _, err := convert(t, item)
	if err != nil || !strings.Contains(want, "weight: 2") {
		t.Fatal(err, want)
	}
	for _, text := range []string{
		"{apiVersion: v1, kind: List, items: [" + item + "]}", "[" + item + "]", item + "\n---\n",
		"{apiVersion: scheduling.volcano.sh/v1beta1, kind: QueueList, items: [{metadata: {name: q}, spec: {weight: 2}}]}",
		"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [" + item + ", null]}]}",
	} {
		if got, _, err := convert(t, text); err != nil || got != want {
			t.Errorf("%s: %v\n%s", text, err, got)
		}
	}
}

// FuzzConvert checks that any input gives an error or manifests that Berth accepts.
func FuzzConvert(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(examples, "*"))
	if err != nil || len(files) < 5 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
		for _, doc := range strings.Split(string(data), "---\n") {
			f.Add(doc)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, _, err := convert(t, text)
		if err != nil {
			return
		}
		accept(t, out)
	})
}
