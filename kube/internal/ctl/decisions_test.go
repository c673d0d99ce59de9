package ctl_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/wire"
	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// placements returns the node and the devices of each pod that the result places, by the name
// of the pod.
func placements(t testing.TB, text string) map[string]string {
	t.Helper()
	var result wire.Result
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	out := map[string]string{}
	for i := range result.Decisions {
		d := &result.Decisions[i]
		name := d.Task
		if single, isSingle := strings.CutPrefix(d.Workload, "pod/"+namespace+"/"); isSingle {
			name = single
		}
		var devices []int
		for _, device := range d.Devices {
			devices = append(devices, device.Index)
		}
		out[name] = fmt.Sprintf("%s %v", d.Node, devices)
	}
	return out
}

// bound returns the node and the devices of each pod that has a node.
func (w *world) bound() map[string]string {
	w.Helper()
	out := map[string]string{}
	for name, p := range w.pods() {
		if p.Spec.NodeName == "" {
			continue
		}
		var devices []int
		if text := p.Annotations[feed.AnnotationDevices]; text != "" {
			var list []cluster.Holding
			if err := json.Unmarshal([]byte(text), &list); err != nil {
				w.Fatal(err)
			}
			for _, h := range list {
				index, err := strconv.Atoi(h.Device[strings.LastIndexAny(h.Device, "-/")+1:])
				if err != nil {
					w.Fatalf("pod %s holds the device %q", name, h.Device)
				}
				devices = append(devices, index)
			}
		}
		out[name] = fmt.Sprintf("%s %v", p.Spec.NodeName, devices)
	}
	return out
}

// randomPods returns pods and up to two gangs. Their names begin with the prefix. With filters,
// some of them have host ports, spread constraints and anti-affinity, which the filters of
// Kubernetes read.
func randomPods(r *rand.Rand, prefix string, filters bool) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range 12 + r.IntN(12) {
		p := pod(fmt.Sprintf("%s-p%02d", prefix, i), int64(r.IntN(5)))
		p.Labels["app"] = fmt.Sprintf("app-%d", r.IntN(3))
		switch r.IntN(8) {
		case 0:
			p.Spec.NodeSelector = map[string]string{"zone": fmt.Sprintf("zone-%d", r.IntN(4))}
		case 1:
			p.Spec.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}
		}
		if filters {
			restrict(r, p)
		}
		out = append(out, p)
	}
	for g := range r.IntN(3) {
		gpus, name := 1+int64(r.IntN(3)), fmt.Sprintf("%s-gang%d", prefix, g)
		for i := range 3 {
			out = append(out, pod(fmt.Sprintf("%s-%d", name, i), gpus, inGang(name, 3)))
		}
	}
	return out
}

// restrict adds what a filter of Kubernetes reads.
func restrict(r *rand.Rand, p *corev1.Pod) {
	same := &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}}
	switch r.IntN(4) {
	case 0:
		withHostPort(8000 + r.Int32N(2))(p)
	case 1:
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: same,
		}}
	case 2:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: same, TopologyKey: corev1.LabelHostname},
		}}}
	}
}

// TestDecisions compares, for random clusters, what kubectl berth simulate says with what
// berth-scheduler then does, and with what berth simulate says about the snapshot if no filter
// of Kubernetes is needed. The policy does not learn: what arrived before, and in which order, is known
// to berth-scheduler alone.
func TestDecisions(t *testing.T) {
	w := newWorld(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\npacking: per-resource\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		w.addNodes(node(fmt.Sprintf("node-%d", i), 2+2*(i%3), func(n *controlplane.Node) {
			n.Labels["zone"] = fmt.Sprintf("zone-%d", i%3)
			if i == 5 {
				n.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
			}
		}))
	}
	berth := buildBerth(t)
	for seed := range *clusters {
		filters := seed%2 == 0
		t.Run(fmt.Sprintf("seed=%d,filters=%t", seed, filters), func(t *testing.T) {
			w.TB = t
			t.Cleanup(w.deletePods)
			// kwok reports the status of a pod by its name, also if another pod has the name by then.
			// A name is therefore used once.
			w.create(randomPods(rand.New(rand.NewPCG(uint64(seed), 1)), fmt.Sprintf("s%d", seed), filters)...)
			said := placements(t, w.answer("simulate", "-o", "json", "--config", config))
			file := filepath.Join(t.TempDir(), "snapshot.json")
			notes := w.run("snapshot", file, "--config", config).stderr
			offline := placements(t, berth("simulate", file, "-o", "json"))
			if same := maps.Equal(said, offline); !same && notes == "" {
				t.Errorf("berth simulate says\n%s\nand kubectl berth simulate says\n%s", show(offline), show(said))
			}
			w.answer("snapshot", "--objects", file, "--config", config)
			if saved := placements(t, run("simulate", "-f", file, "-o", "json", "--config", config).stdout); !maps.Equal(said, saved) {
				t.Errorf("kubectl berth simulate -f says\n%s\nand without -f\n%s", show(saved), show(said))
			}
			if filters != (notes != "") {
				t.Errorf("the notes of the snapshot are %q", notes)
			}
			stop := w.scheduler("--config", config)
			w.eventually(w.undecided)
			if done := w.bound(); !maps.Equal(said, done) {
				t.Errorf("berth-scheduler did\n%s\nand kubectl berth simulate says\n%s\nThe conditions are\n%s", show(done), show(said), show(w.conditions()))
			}
			stop()
			t.Logf("%d of %d pods are placed; the snapshot gives the same: %t", len(said), len(w.pods()), maps.Equal(said, offline))
		})
	}
}

// undecided returns a pod that is neither bound nor said to be unschedulable; "" if there is
// none.
func (w *world) undecided() string {
	for name, p := range w.pods() {
		decided := p.Spec.NodeName != ""
		for _, c := range p.Status.Conditions {
			decided = decided || c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != ""
		}
		if !decided {
			return "no decision about pod " + name
		}
	}
	return ""
}

// conditions returns why pods are not scheduled.
func (w *world) conditions() map[string]string {
	out := map[string]string{}
	for name, p := range w.pods() {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				out[name] = fmt.Sprintf("%s %s: %s", c.LastTransitionTime.UTC().Format("15:04:05"), c.Reason, c.Message)
			}
		}
	}
	return out
}

func show(m map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "  %s %s\n", name, m[name])
	}
	return b.String()
}

// buildBerth builds the command berth, and returns a function that runs it.
func buildBerth(t *testing.T) func(args ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "berth")
	c := exec.Command("go", "build", "-o", binary, "./cmd/berth")
	c.Dir = filepath.Join("..", "..", "..")
	c.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		c := exec.Command(binary, args...)
		c.Stdout, c.Stderr = &stdout, &stderr
		if err := c.Run(); err != nil {
			t.Fatalf("berth %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
		}
		return stdout.String()
	}
}
