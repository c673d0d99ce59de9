package ctl_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/wire"
	"github.com/berth-project/berth/kube/internal/controlplane"
)

// modelManifests are models that fit, that fit with less, that never fit, and that are not valid.
const modelManifests = `apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: chat, namespace: default}
spec: {replicas: 2, source: {preset: phi-4}}
---
apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: whole, namespace: default}
spec: {source: {preset: phi-4-mini}, placement: {unit: Node}}
---
apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: large, namespace: default}
spec: {source: {preset: llama-3.3-70b}, context: 131072, placement: {distributed: false}}
---
apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: long, namespace: default}
spec: {source: {preset: llama-3.1-8b}, context: 131072, placement: {devicesPerReplica: 1}}
---
apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: wrong, namespace: default}
spec: {source: {gguf: absent.gguf}, backend: llamacpp, server: {args: [secret-of-server]}}
---
apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: idle, namespace: default}
spec: {replicas: 0, source: {preset: phi-4-mini}}
---
apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: phi-4, namespace: kube-public}
spec: {source: {preset: phi-4}, server: {args: [secret-of-server]}}
`

// TestModels checks the answers about models of a cluster without berth-controller.
func TestModels(t *testing.T) {
	w := newWorld(t)
	for _, args := range []string{"models", "why model/chat", "estimate model/chat", "whatif --set model/chat.spec.context=1"} {
		want := "kubectl berth: the API server does not have the kind Model of berth.dev; the CustomResourceDefinition of Model adds it\n"
		if r := w.run(strings.Fields(args)...); r.code != 2 || r.stderr != want {
			t.Errorf("kubectl berth %s: exit code %d, %q", args, r.code, r.stderr)
		}
	}
	w.Install("../../config/crd/models.berth.dev.yaml")
	w.addNodes(node("gpu-1", 4), node("gpu-2", 4), node("gpu-3", 2))
	w.apply(modelManifests)
	for _, c := range []struct{ file, args string }{
		{"models.txt", "models"},
		{"models-one.txt", "models chat"},
		{"models-all.txt", "models -A"},
		{"models-why-placed.txt", "why model/chat"},
		{"models-why-whole.txt", "why model/whole"},
		{"models-why-large.txt", "why large"},
		{"models-why-long.txt", "why model/long"},
		{"models-estimate.txt", "estimate model/chat --kv-bits 8"},
		{"models-estimate-file.txt", "estimate testdata/model.yaml"},
		{"models-whatif.txt", "whatif --set model/long.spec.context=16384"},
		{"models-simulate.txt", "simulate"},
	} {
		t.Run(strings.TrimSuffix(c.file, ".txt"), func(t *testing.T) {
			w.TB = t
			r := w.run(strings.Fields(c.args)...)
			golden(t, c.file, r.stderr+ageless(r.stdout))
			if r.code != 0 {
				t.Errorf("exit code %d", r.code)
			}
		})
	}
	w.TB = t
	t.Run("cures", w.checkCures)
	t.Run("same as berth", w.checkSameAsBerth)
	t.Run("names", w.checkModelNames)
	t.Run("files", w.checkModelFiles)
	t.Run("hostile status", w.checkHostileStatus)
	t.Run("without the permission", w.checkNoModels)
}

// checkCures checks that each change that would help is made by its arguments.
func (w *world) checkCures(t *testing.T) {
	w.TB = t
	var report wire.Report
	if err := json.Unmarshal([]byte(w.answer("why", "model/long", "-o", "json")), &report); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, c := range report.Trials {
		if !c.Fits {
			continue
		}
		if len(c.Arguments) == 0 {
			t.Errorf("%s has no arguments", c.Change)
			continue
		}
		var d wire.Difference
		if err := json.Unmarshal([]byte(w.answer(append([]string{"whatif", "-o", "json"}, c.Arguments...)...)), &d); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(d.Placed, func(m wire.Move) bool { return m.Workload == "model/default/long-0" }) {
			t.Errorf("%s: %v does not place the model: %+v", c.Change, c.Arguments, d)
		}
		tried++
	}
	if tried < 2 {
		t.Errorf("only %d changes would help: %+v", tried, report.Trials)
	}
}

// checkSameAsBerth checks that the answers about refused models are those of berth about the same
// objects, if parts of devices can be held.
func (w *world) checkSameAsBerth(t *testing.T) {
	w.TB = t
	file := filepath.Join(t.TempDir(), "dump.yaml")
	text := w.Kubectl("", "get", "nodes,models.berth.dev", "-n", "default", "-o", "yaml")
	text = strings.ReplaceAll(text, "gguf: absent.gguf", "preset: phi-4-mini")
	text = strings.ReplaceAll(text, "backend: llamacpp", "backend: vllm")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	berth := buildBerth(t)
	for _, name := range []string{"long", "large"} {
		got := w.answer("why", "model/"+name, "--devices-enforced", "--scheduler-name", "berth-scheduler")
		if want := berth("why", "model/default/"+name, file); got != want {
			t.Errorf("kubectl berth why model/%s answers\n%s\nand berth\n%s", name, got, want)
		}
		got = w.answer("estimate", "model/"+name)
		if want := berth("estimate", "--cluster", file, writeModel(t, w, name)); got != want {
			t.Errorf("kubectl berth estimate model/%s answers\n%s\nand berth\n%s", name, got, want)
		}
	}
}

// writeModel writes the manifest of a model, and returns the name of the file.
func writeModel(t *testing.T, w *world, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(file, []byte(w.Kubectl("", "get", "models.berth.dev", name, "-n", "default", "-o", "yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// checkModelNames checks how models are named, and the errors about names.
func (w *world) checkModelNames(t *testing.T) {
	w.TB = t
	for args, same := range map[string]string{
		"why models/long": "why model/long", "why model.berth.dev/long": "why model/long", "why long": "why model/long",
		"why model/default/long -n kube-public": "why model/long", "why model/long-0": "why model/long",
		"estimate chat": "estimate model/chat", "estimate preset/phi-4": "estimate phi-4",
		"models model/chat -o json": "models chat -o json",
	} {
		if got, want := w.answer(strings.Fields(args)...), w.answer(strings.Fields(same)...); got != want {
			t.Errorf("kubectl berth %s differs from kubectl berth %s", args, same)
		}
	}
	file := writeModel(t, w, "chat")
	if got, want := w.answer("estimate", "-f", file), w.answer("estimate", file); got != want || !strings.Contains(got, "model/default/chat, phi-4 (preset)") {
		t.Errorf("kubectl berth estimate -f FILE answers\n%s\nwant\n%s", got, want)
	}
	if r := w.run("estimate", "phi-4", "-n", "kube-public"); r.stderr != "note: phi-4 is also a preset; the answer is about model/kube-public/phi-4, and preset/phi-4 is the preset\n" {
		t.Errorf("the note is %q", r.stderr)
	}
	for args, want := range map[string]string{
		"why model/chatt":                                 `namespace default has no model "chatt"; the nearest names are chat`,
		"why model/phi-4":                                 `namespace default has no model "phi-4"; namespace kube-public has one (see -n)`,
		"why model/x -n kube-system":                      `namespace kube-system has no model "x"; it has no models`,
		"why chatt":                                       `namespace default has no pod or job "chatt"; the nearest names are chat`,
		"why model/chat-2":                                "model/default/chat has no replica 2; it has 2 replicas, numbered from 0",
		"why model/chat-01":                               `namespace default has no model "chat-01"; the nearest names are chat`,
		"why model/idle":                                  "model/default/idle has no replicas, and requests none (spec.replicas is 0)",
		"why model/wrong":                                 "model/default/wrong cannot be served: spec.source: absent.gguf cannot be read, because no directory of models is named (--models-directory); name a preset, write the config.json under source.config, or say how much memory it needs under memory",
		"models chatt":                                    `namespace default has no model "chatt"; the nearest names are chat`,
		"models chat-0":                                   `namespace default has no model "chat-0"; the nearest names are chat`,
		"models pod/chat":                                 `"pod/chat" is no Model; write NAME or model/NAME`,
		"models chat long":                                `kubectl berth models takes one name at most, and "long" is a second one`,
		"estimate model/chatt":                            `namespace default has no model "chatt"; the nearest names are chat`,
		"estimate model/chat-0":                           "model/chat-0 is a replica; name model/chat",
		"estimate":                                        "kubectl berth estimate needs the name of a model, of a preset or of a file\nUsage: kubectl berth estimate MODEL|PRESET|FILE [flags]",
		"estimate chat --context-tokens -1":               "--context-tokens -1 is not between 1 and 100000000",
		"estimate -f objects.json":                        `-f objects.json: without an argument, -f names a .yaml file with Models; with one, it names a file that "kubectl berth snapshot --objects" wrote`,
		"whatif --set model/chatt.spec.context=1":         `--set model/chatt.spec.context=1: the cluster has no model/chatt; did you mean "model/chat"?`,
		"whatif --set model/chat.spec.colour=1":           `--set model/chat.spec.colour=1: strict decoding error: unknown field "spec.colour"`,
		"whatif --set model/chat.spec.context=1000000000": "with the change, model/default/chat cannot be served: spec.context: want from 1 to 100000000, have 1000000000",
	} {
		r := w.run(strings.Fields(args)...)
		lines := strings.SplitN(r.stderr, "kubectl berth: ", 2)
		if got := strings.TrimSuffix(lines[len(lines)-1], "\n"); got != want || r.code != 2 || r.stdout != "" {
			t.Errorf("kubectl berth %s: exit code %d, want 2; it wrote\n%q, want\n%q", args, r.code, got, want)
		}
	}
	if r := w.run("estimate", "chatt"); r.code != 2 || !strings.HasSuffix(r.stderr, "; the nearest Models of namespace default are chat\n") {
		t.Errorf("exit code %d, %q", r.code, r.stderr)
	}
}

// checkModelFiles checks that saved objects give the same answers, and have no secrets.
func (w *world) checkModelFiles(t *testing.T) {
	w.TB = t
	file := filepath.Join(t.TempDir(), "objects.json")
	w.answer("snapshot", "--objects", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret-of") {
		t.Error("the file has the arguments of a server")
	}
	for _, args := range []string{"models -o json", "why model/long", "why model/whole", "estimate model/chat", "whatif --set model/long.spec.context=16384"} {
		if got, want := run(strings.Fields(args+" -f "+file)...).stdout, w.answer(strings.Fields(args)...); got != want {
			t.Errorf("kubectl berth %s -f differs:\n%s\nwithout -f:\n%s", args, got, want)
		}
	}
}

// checkNoModels checks that commands that need no Models work without the permission to list them.
func (w *world) checkNoModels(t *testing.T) {
	w.TB = t
	w.apply(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: without-models}
rules:
- {apiGroups: ["", apps, batch, policy, storage.k8s.io, scheduling.k8s.io, resource.k8s.io], resources: ["*"], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: without-models}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: without-models}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
`)
	w.answer("top", "--as", "bob")
	w.answer("estimate", "phi-4", "--as", "bob")
	r := w.run("models", "--as", "bob")
	if want := "kubectl berth: the user of the context may not list models.berth.dev in all namespaces; a ClusterRole with the verb list for them allows it\n"; r.code != 2 || r.stderr != want {
		t.Errorf("exit code %d, %q; want %q", r.code, r.stderr, want)
	}
}

// TestModelsOfController checks the answers about models that berth-controller runs, and that pods
// of models are placed as kubectl berth simulate says.
func TestModelsOfController(t *testing.T) {
	w := &world{}
	w.connect(t, controlplane.ControllerManager, controlplane.LWS)
	w.Install("../../config/crd/queues.berth.dev.yaml")
	w.Install("../../config/crd/models.berth.dev.yaml")
	w.addNodes(node("gpu-1", 4), node("gpu-2", 4), node("gpu-3", 1))
	w.apply(`apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: cached, namespace: default}
spec: {source: {preset: phi-4-mini}, server: {cache: {claim: absent}}}
---
apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: chat, namespace: default}
spec: {replicas: 5, source: {preset: phi-4}}
---
apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: long, namespace: default}
spec: {source: {preset: llama-3.1-8b}, context: 131072, placement: {devicesPerReplica: 1}}
`)
	w.Controller(w.cp.Kubeconfig(), "--webhook-mode", "off", "--leader-elect=false")
	w.eventually(func() string {
		if n := len(w.pods()); n != 7 {
			return fmt.Sprintf("%d pods", n)
		}
		return ""
	})
	said := placements(t, w.answer("simulate", "-o", "json"))
	w.scheduler()
	w.eventually(func() string {
		if done := w.bound(); !maps.Equal(said, done) {
			return fmt.Sprintf("berth-scheduler did\n%s\nand kubectl berth simulate says\n%s", show(done), show(said))
		}
		return w.undecided()
	})
	if len(said) != 4 {
		t.Fatalf("%d pods are placed: %s", len(said), show(said))
	}
	w.eventually(func() string {
		if r := w.run("models", "chat"); !strings.Contains(r.stdout, "  4/5  ") || r.stderr != "" {
			return r.stderr + r.stdout
		}
		return ""
	})
	table := w.answer("models")
	golden(t, "models-controller.txt", ageless(table))
	if !regexp.MustCompile(`(?m)^chat .* [0-9]+[sm]([0-9]+s)?$`).MatchString(table) {
		t.Errorf("the model has no age:\n%s", table)
	}
	waiting := ""
	for name := range w.pods() {
		if strings.HasPrefix(name, "long-") {
			waiting = name
		}
	}
	r := w.run("why", "model/chat")
	golden(t, "models-controller-why.txt", r.stderr+r.stdout)
	r = w.run("why", "model/cached") // only the filters of Kubernetes know why its pod waits
	golden(t, "models-controller-filters.txt", r.stderr+r.stdout)
	r = w.run("why", "model/long")
	golden(t, "models-controller-cures.txt", r.stderr+r.stdout)
	golden(t, "models-controller-whatif.txt", w.answer("whatif", "--set", "model/long.spec.context=24576"))
	var fewer wire.Difference
	if err := json.Unmarshal([]byte(w.answer("whatif", "--set", "model/chat.spec.replicas=3", "-o", "json")), &fewer); err != nil {
		t.Fatal(err)
	}
	if len(fewer.NoLongerRequested) != 2 || fewer.Before.Placed != 4 || fewer.After.Placed != 3 {
		t.Errorf("with two replicas less: %+v", fewer)
	}
	if out := w.answer("why", "model/chat-0"); !strings.Contains(out, "Pod/default/chat-") || !strings.Contains(out, " on gpu-") {
		t.Errorf("the answer about a replica that runs is\n%s", out)
	}
	if r := w.run("why", waiting); !strings.Contains(r.stderr, `"kubectl berth why model/long -n default" tries all forms`) {
		t.Errorf("the note about the pod is %q", r.stderr)
	}
}

// ageless returns the text without the last column of its first table, if that is AGE.
func ageless(table string) string {
	head, rest, _ := strings.Cut(table, "\n\n")
	if !strings.Contains(head, "AGE") {
		return table
	}
	return regexp.MustCompile(`(?m) +\S+$`).ReplaceAllString(head, "") + "\n\n" + rest
}

// checkHostileStatus checks that a status that another program wrote is shown without control
// characters and on one line, and breaks no answer.
func (w *world) checkHostileStatus(t *testing.T) {
	w.TB = t
	w.apply(`apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: hostile, namespace: default}
spec: {source: {preset: phi-4-mini}}
`)
	status := map[string]any{"status": map[string]any{
		"observedGeneration": 1, "readyReplicas": 2000000000, "nodesPerReplica": 2000000000, "groupName": "red \x1b[31m\nwhole  NVIDIA  9/9",
		"estimate":   map[string]any{"form": strings.Repeat("x", 300), "perDevice": "9999999999E"},
		"replicas":   []any{map[string]any{"replica": 9999, "state": "Running", "pods": []any{"absent", "absent"}}},
		"conditions": []any{map[string]any{"type": "Placed", "status": "False", "reason": "Evil", "message": "\x1b]0;title\x07\n\nmodel/chat: gone " + strings.Repeat("y", 3000), "lastTransitionTime": "2026-01-02T15:04:05Z"}},
	}}
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	w.Kubectl("", "patch", "models.berth.dev", "hostile", "--subresource=status", "--type=merge", "-p", string(text))
	check := func(flags string) {
		for _, args := range []string{"models", "models hostile", "models -o json", "why model/hostile", "why model/hostile-0", "why model/chat", "estimate model/hostile", "whatif --set model/hostile.spec.replicas=2"} {
			r := w.run(strings.Fields(args + flags)...)
			if r.code != 0 {
				t.Errorf("kubectl berth %s: exit code %d, %s", args, r.code, r.stderr)
			}
			if strings.ContainsAny(r.stdout+r.stderr, "\x1b\x07") || strings.Contains(r.stdout, "\nmodel/chat: gone") || strings.Contains(r.stdout, "\nwhole  NVIDIA  9/9") {
				t.Errorf("kubectl berth %s writes what is in the status as it is:\n%q", args, r.stdout)
			}
		}
	}
	check("")
	// A file may have what the API server rejects.
	file := filepath.Join(t.TempDir(), "objects.json")
	w.answer("snapshot", "--objects", file)
	saved, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	worse := strings.NewReplacer(`"readyReplicas":2000000000`, `"readyReplicas":-7`, `"nodesPerReplica":2000000000`, `"nodesPerReplica":-1`, `"replica":9999`, `"replica":-3`, `"9999999999E"`, `"-5"`).Replace(string(saved))
	if err := os.WriteFile(file, []byte(worse), 0o600); err != nil {
		t.Fatal(err)
	}
	check(" -f " + file)
	unreadable := strings.Replace(worse, `"replica":-3`, `"replica":"x"`, 1)
	if err := os.WriteFile(file, []byte(unreadable), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.run("models", "-f", file); r.code != 0 || !strings.Contains(r.stderr, "note: model/default/hostile: it cannot be read: ") || strings.Contains(r.stdout, "hostile") {
		t.Errorf("exit code %d, %q\n%s", r.code, r.stderr, r.stdout)
	}
	if r := w.run("why", "model/hostile", "-f", file); r.code != 2 || !strings.Contains(r.stderr, "kubectl berth: model/default/hostile: it cannot be read: ") {
		t.Errorf("exit code %d, %q", r.code, r.stderr)
	}
}
