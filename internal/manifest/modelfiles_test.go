package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	gguf "github.com/berth-project/berth/internal/estimate/gguf/sample"
	hf "github.com/berth-project/berth/internal/estimate/hf/sample"
)

// Paths are relative to the manifest, whatever the working directory is.
func TestModelFilesAreRelativeToTheManifest(t *testing.T) {
	dir := write(t, map[string]string{
		"manifests/models.yaml": aModel("{source: {gguf: ../models/llama.gguf}}") + "\n---\n" +
			object("Model", "hf", "spec: {source: {huggingFace: ../models/hf}}") + "\n---\n" +
			object("Model", "local", "spec: {source: {localPath: ../models/llama.gguf}}") + gpu,
		"models/hf/README.md": "",
	})
	if err := gguf.Llama8B().Write(filepath.Join(dir, "models/llama.gguf"), false); err != nil {
		t.Fatal(err)
	}
	if err := hf.WriteIndex(filepath.Join(dir, "models/hf"), "llama-3.1-8b"); err != nil {
		t.Fatal(err)
	}
	b, err := Load([]string{filepath.Join(dir, "manifests")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.State(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range b.Plans() {
		got = append(got, fmt.Sprint(p.Spec.ID, " ", p.Spec.Backend.Name, " ", p.Spec.Source.Format, " ", p.Spec.Files.Main, " ", p.Spec.Files.Path))
	}
	want := []string{
		"model/chat llamacpp gguf ../models/llama.gguf ", "model/hf vllm safetensors ../models/hf ",
		"model/local llamacpp gguf ../models/llama.gguf ../models/llama.gguf",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Only files and directories are opened: opening a pipe waits for a writer, and a device
// such as /dev/zero has no end.
func TestOnlyFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"pipe.gguf", "pipe/config.json", "adapter/adapter_model.safetensors", "weights/model.safetensors"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config, err := hf.Config("llama-3.1-8b")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"adapter/adapter_config.json": []byte("{}"), "weights/config.json": config} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"loop.gguf": "loop.gguf", "null.gguf": os.DevNull, "round": "round"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct{ source, want string }{
		"pipe":             {"source: {gguf: pipe.gguf}", "it is a device or pipe, not a file"},
		"pipe inside":      {"source: {huggingFace: pipe}", "config.json is not a regular file"},
		"pipe of weights":  {"source: {huggingFace: weights}", "model.safetensors is not a regular file"},
		"pipe of adapters": {"source: {preset: phi-4}, adapters: [{name: a, path: adapter}]", "adapter_model.safetensors is not a regular file"},
		"device":           {"source: {gguf: null.gguf}", "it is a device"},
		"loop":             {"source: {gguf: loop.gguf}", "too many levels of symbolic links"},
		"loop of folders":  {"source: {huggingFace: round}", "too many levels of symbolic links"},
		"on the nodes":     {"source: {localPath: pipe.gguf}", "it is a device or pipe, not a file"},
	}
	for name, tt := range tests {
		b, err := Parse(filepath.Join(dir, "f.yaml"), []byte(aModel("{"+tt.source+"}")+gpu))
		if err == nil {
			_, err = b.State()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "f.yaml:4:") {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// A model of which the memory is given needs no files here: they may be on the nodes only.
func TestFilesThatAreOnNodesOnly(t *testing.T) {
	text := aModel("{source: {localPath: /mnt/chat.gguf}, memory: {total: 8Gi}}") + gpu
	b, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	files := s.Job("model/chat-0").Alternatives[0].Tasks[0].Shape.Files
	if want := (cluster.Files{Main: "/mnt/chat.gguf", Path: "/mnt/chat.gguf"}); files != want {
		t.Errorf("%+v, want %+v", files, want)
	}
}

// Equal manifests give equal States.
func TestEqualModelsGiveEqualStates(t *testing.T) {
	text := aModel("{replicas: 3, source: {preset: phi-4}, placement: {distributed: true}}") + gpu + "\n---\n" +
		object("Model", "whole", "spec: {replicas: 2, source: {preset: phi-4-mini}, placement: {unit: Node, nodeSelector: {a: b, c: d}}}\nstatus: {replicas: [{replica: 0, placements: [{task: node-0, node: gpu}]}]}") + "\n---\n" +
		aNodeWith("state: MAINTENANCE, files: {phi-4: READY, x: DOWNLOADING}, freeMemory: [1Gi, 30Gi]")
	b, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	first, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(describeModels(t, first), describeModels(t, second)); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}

// describeModels returns a text of the jobs in State, with everything that an alternative
// requests.
func describeModels(t *testing.T, s *cluster.State) string {
	t.Helper()
	var out strings.Builder
	show := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(text, '\n'))
	}
	for _, n := range s.Nodes() {
		show([]any{n.Name, n.Labels, n.Devices, n.Resources, n.Phase, n.Artifacts})
	}
	for _, id := range []string{"model/chat-0", "model/chat-1", "model/chat-2", "model/whole-0", "model/whole-1"} {
		j := s.Job(id)
		show([]any{j.ID, j.Set, j.Chosen, j.Remarks})
		for _, a := range j.Alternatives {
			show([]any{a.Name, a.Whole, a.Min})
			for _, task := range a.Tasks {
				show([]any{task.ID, task.Shape, task.Claims})
			}
		}
	}
	return out.String()
}

func TestSetOfModels(t *testing.T) {
	b, err := Parse("f", []byte(aModel("{source: {preset: phi-4}}")+gpu))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"model/chat.spec.context=8192", "model/chat.spec.replicas=2", "model/chat.spec.placement.devices=[gpu:cuda:1]"} {
		if err := b.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	need := s.Job("model/chat-1").Alternatives[0].Tasks[0].Shape.Need
	if got := b.Plans()[0].Spec.Serving.Context; got != 8192 || len(need.Selected) != 1 {
		t.Errorf("context %d, devices %v", got, need.Selected)
	}
	if err := b.Set("model/chat.spec.context=-1"); err == nil || !strings.Contains(err.Error(), "want from 1 to 100000000, have -1") {
		t.Errorf("a context of -1: %v", err)
	}
	if b.Models[0].Spec.Context != 8192 {
		t.Errorf("a value that was refused was set: %d", b.Models[0].Spec.Context)
	}
}

// A reading of free memory makes what no task holds foreign, and memory that is reserved
// is not offered.
func TestReadingsOfFreeMemory(t *testing.T) {
	b, err := Parse("f", []byte(node("{resources: {cpu: 8, memory: 64Gi}, unifiedMemory: true, devices: {product: A10, count: 2, memory: 24Gi, reserved: 2Gi}}")+
		"\nstatus: {state: MAINTENANCE, files: {phi-4: READY}, freeMemory: [10Gi]}"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	n := s.Node("n")
	got := []any{n.Ready(), n.Unified, n.Artifacts["phi-4"], n.Devices[0].Free(), n.Devices[1].Free()}
	if diff := cmp.Diff([]any{false, true, cluster.ArtifactState("READY"), cluster.Bytes(10 << 30), cluster.Bytes(22 << 30)}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A source of another kind than its field is for is an error.
func TestSourcesOfAnotherKind(t *testing.T) {
	dir := t.TempDir()
	if err := gguf.Llama8B().Write(filepath.Join(dir, "llama.gguf"), false); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "hf"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := hf.WriteIndex(filepath.Join(dir, "hf"), "llama-3.1-8b"); err != nil {
		t.Fatal(err)
	}
	file, hub := filepath.Join(dir, "llama.gguf"), filepath.Join(dir, "hf")
	tests := map[string]struct{ spec, want string }{
		"a directory as GGUF":  {"{source: {gguf: " + hub + "}}", "4:16: spec.source: " + hub + " is not a GGUF file; write a directory with config.json under huggingFace"},
		"a file as directory":  {"{source: {huggingFace: " + file + "}}", "4:16: spec.source: " + file + " is not a directory with a config.json; write a GGUF file under gguf"},
		"with memory given":    {"{memory: {device: 1Gi}, source: {gguf: " + hub + "}}", "4:39: spec.source: " + hub + " is not a GGUF file; write a directory with config.json under huggingFace"},
		"GGUF, of sglang":      {"{backend: sglang, source: {gguf: " + file + "}}", "4:33: spec.source: sglang serves safetensors or presets, and llama is not one of these; name another backend, or say how much memory it needs under memory"},
		"GGUF, of vllm":        {"{backend: vllm, source: {gguf: " + file + "}}", ""},
		"directory, of sglang": {"{backend: sglang, source: {huggingFace: " + hub + "}}", ""},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, problems(aModel(tt.spec))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
