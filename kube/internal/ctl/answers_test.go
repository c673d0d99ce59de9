package ctl_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
)

// TestAnswers checks the texts of all commands about one cluster: pods that are bound, pending
// and impossible, a gang, and pods that only a filter of Kubernetes rejects.
func TestAnswers(t *testing.T) {
	w := newWorld(t)
	w.fill()
	for _, c := range []struct{ file, args string }{
		{"why-bound.txt", "why bound-1"},
		{"why-impossible.txt", "why pod/impossible"},
		{"why-port.txt", "why port"},
		{"why-selected.txt", "why selected"},
		{"why-gang.txt", "why job/train"},
		{"whatif-add.txt", "whatif --add-nodes NVIDIA-L4=2"},
		{"whatif-remove.txt", "whatif --remove gpu-1"},
		{"whatif-set.txt", "whatif --set node/gpu-3.spec.taints=[]"},
		{"queues.txt", "queues"},
		{"simulate.txt", "simulate"},
		{"top.txt", "top"},
	} {
		t.Run(strings.TrimSuffix(c.file, ".txt"), func(t *testing.T) {
			w.TB = t
			golden(t, c.file, w.answer(strings.Fields(c.args)...))
		})
	}
	t.Run("errors", func(t *testing.T) {
		w.TB = t
		w.checkErrors(t)
	})
	t.Run("notes", func(t *testing.T) {
		w.TB = t
		r := w.run("why", "train-1")
		if want := "note: pod/default/train-1 is a pod of group/default/train, and the answer is about all its pods\n"; r.stderr != want {
			t.Errorf("the note is %q, want %q", r.stderr, want)
		}
		if r = w.run("queues"); !strings.Contains(r.stderr, "the API server does not have the kind Queue of berth.dev") {
			t.Errorf("the note about the kind Queue is missing: %q", r.stderr)
		}
	})
	t.Run("files", w.checkFiles)
	t.Run("plugin of kubectl", w.checkPlugin)
	t.Run("json", func(t *testing.T) {
		w.TB = t
		for _, args := range []string{"why port -o json", "whatif --remove gpu-1 -o json", "queues -o json", "simulate -o json", "simulate -o json --explain", "top -o json"} {
			if out := w.answer(strings.Fields(args)...); !json.Valid([]byte(out)) {
				t.Errorf("kubectl berth %s is not JSON:\n%s", args, out)
			}
		}
	})
	t.Run("fail on pending", func(t *testing.T) {
		w.TB = t
		if r := w.run("simulate", "--fail-on-pending"); r.code != 1 {
			t.Errorf("exit code %d, want 1", r.code)
		}
	})
}

// checkPlugin checks that kubectl finds the program, and runs it with the flags and the name of
// a configuration file.
func (w *world) checkPlugin(t *testing.T) {
	w.TB = t
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "kubectl-berth"), "../../cmd/kubectl-berth")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config := filepath.Join(dir, "config.yaml")
	text := "apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nplugins: [{name: TaintToleration, disabled: true}]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	binaries, err := controlplane.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(filepath.Join(binaries, "kubectl"), "berth", "why", "train-0", "--config", config, "-n", "default")
	c.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+w.cp.Kubeconfig())
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Without its own filter of taints, Berth says what the filter of Kubernetes says.
	if want := "KubernetesFilters  the node has a taint that the pod does not tolerate"; !strings.Contains(string(out), want) {
		t.Errorf("the answer does not have %q:\n%s", want, out)
	}
}

// checkFiles checks what snapshots have, and that the commands give the same answers about saved
// objects.
func (w *world) checkFiles(t *testing.T) {
	w.TB = t
	r := w.run("snapshot")
	golden(t, "snapshot-notes.txt", r.stderr)
	for _, hidden := range []string{"secret-of", "TOKEN", "image\""} {
		if strings.Contains(r.stdout, hidden) {
			t.Errorf("the snapshot has %q", hidden)
		}
	}
	if !strings.Contains(r.stdout, "which berth does not read") {
		t.Error("the note about host ports is not in the snapshot")
	}
	file := filepath.Join(t.TempDir(), "objects.json")
	w.answer("snapshot", "--objects", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{"secret-of", "TOKEN", "example.com/password"} {
		if strings.Contains(string(text), hidden) {
			t.Errorf("the file has %q", hidden)
		}
	}
	for _, args := range []string{"why port", "whatif --remove gpu-1", "simulate -o json", "top", "queues"} {
		if got, want := run(strings.Fields(args+" -f "+file)...).stdout, w.answer(strings.Fields(args)...); got != want {
			t.Errorf("kubectl berth %s -f differs:\n%s\nwithout -f:\n%s", args, got, want)
		}
	}
	if r := run("top", "-f", filepath.Join("testdata", "top.txt")); r.code != 2 || !strings.Contains(r.stderr, `this is no file that "kubectl berth snapshot --objects" wrote`) {
		t.Errorf("exit code %d, %q", r.code, r.stderr)
	}
}

// fill creates the nodes and pods of TestAnswers.
func (w *world) fill() {
	w.addNodes(
		node("gpu-1", 4), node("gpu-2", 4),
		node("gpu-3", 4, func(n *controlplane.Node) {
			n.Taints = []corev1.Taint{{Key: "team", Value: "research", Effect: corev1.TaintEffectNoSchedule}}
		}),
	)
	w.create(pod("bound-1", 3, withHostPort(8080)))
	w.bind("bound-1", "gpu-1")
	w.create(pod("bound-2", 3, withHostPort(8080)))
	w.bind("bound-2", "gpu-2")
	w.create(pod("other", 1, func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }))
	w.bind("other", "gpu-3")
	w.create(pod("foreign", 1, func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }))
	w.create(pod("gated", 1, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}} }))
	w.create(pod("impossible", 9, func(p *corev1.Pod) { p.Annotations["example.com/password"] = "secret-of-annotation" }))
	w.create(pod("port", 0, withHostPort(8080)))
	w.create(pod("selected", 1, withSelector("team", "research")))
	for i := range 3 {
		w.create(pod(fmt.Sprintf("train-%d", i), 2, inGang("train", 3)))
	}
}

// checkErrors checks that each error says what is wrong and what to do.
func (w *world) checkErrors(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"why trian-0", `namespace default has no pod or job "trian-0"; the nearest names are train-0, train-1, train-2 and train`},
		{"why bound-1 -n kube-system", `namespace kube-system has no pod or job "bound-1"; namespace default has one (see -n)`},
		{"why foreign", "pod/default/foreign has the scheduler name another, and Berth places pods with berth-scheduler; it is not on a node. --scheduler-name names others"},
		{"why other", "pod/default/other has the scheduler name another, and Berth places pods with berth-scheduler; it is on node gpu-3. --scheduler-name names others"},
		{"why gated", `pod/default/gated is not scheduled: it is held back by the scheduling gate "example.com/wait"; it is scheduled after the gate is removed`},
		{"why", "kubectl berth why needs the name of a pod, of a job or of a model\nUsage: kubectl berth why POD|JOB|model/NAME [flags]"},
		{"why port -o yaml", `--output "yaml": unknown value; the values are text, json`},
		{"whatif", "whatif needs a change: --add-nodes, --remove or --set"},
		{"whatif --remove gpu-9", `--remove gpu-9: no such node; did you mean "gpu-1"?`},
		{"whatif --set pod/prt.spec.priority=1", `--set pod/prt.spec.priority=1: the cluster has no pod/prt; did you mean "pod/port"?`},
		{"whatif --set pod/port.spec.colour=1", `--set pod/port.spec.colour=1: strict decoding error: unknown field "spec.colour"`},
		{"top now", `kubectl berth top takes no arguments, and "now" is one; the cluster is read from the API server`},
		{"why port --now today", "--now today: want a time between 1970 and 2200, such as 2026-01-02T15:04:05Z"},
		{"why port --as bob", "the user of the context may not list csidrivers.storage.k8s.io, csinodes.storage.k8s.io, csistoragecapacities.storage.k8s.io, deviceclasses.resource.k8s.io, jobs.batch, namespaces, nodes, persistentvolumeclaims, persistentvolumes, poddisruptionbudgets.policy, pods, priorityclasses.scheduling.k8s.io, resourceclaims.resource.k8s.io, resourceslices.resource.k8s.io, storageclasses.storage.k8s.io and volumeattachments.storage.k8s.io in all namespaces; a ClusterRole with the verb list for them allows it"},
		{"why port --context absent", `context "absent" does not exist; check --kubeconfig and --context`},
		{"why port --config absent.yaml", "absent.yaml: cannot be read: no such file or directory"},
	} {
		r := w.run(strings.Fields(c.args)...)
		if got := strings.TrimSuffix(strings.TrimPrefix(r.stderr, "kubectl berth: "), "\n"); got != c.want || r.code != 2 || r.stdout != "" {
			t.Errorf("kubectl berth %s: exit code %d, want 2; it wrote\n%q, want\n%q", c.args, r.code, got, c.want)
		}
	}
}

// TestNoCluster checks the errors without an API server.
func TestNoCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, c := range []struct{ args, want string }{
		{"top --kubeconfig " + file, "kubectl berth: the API server at http://127.0.0.1:1 does not answer: "},
		{"top", "kubectl berth: no cluster is configured; name a kubeconfig file with --kubeconfig, or set KUBECONFIG\n"},
	} {
		if r := run(strings.Fields(c.args)...); r.code != 2 || !strings.HasPrefix(r.stderr, c.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("kubectl berth %s: exit code %d, %q; want 2, %q", c.args, r.code, r.stderr, c.want)
		}
	}
}
