package models

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/berth-project/berth/kube/internal/testcluster"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var (
	a100x40 = testcluster.Product{Name: "A100", Memory: 40960}
	a100x80 = testcluster.Product{Name: "A100", Memory: 81920}
	a10     = testcluster.Product{Name: "A10", Memory: 24576}
)

// addExampleNodes adds two nodes with 4 A100 of 40 GiB, one with 8 A100 of 80 GiB, and one with an
// A10.
func (w *world) addExampleNodes() {
	w.Helper()
	w.AddNodes(
		testcluster.Node("a100-4-1", 4, a100x40), testcluster.Node("a100-4-2", 4, a100x40),
		testcluster.Node("a100-8-1", 8, a100x80), testcluster.Node("a10-1", 1, a10))
}

const wholeNodeModel = `apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: %s, namespace: default}
spec:
  replicas: %d
  backend: vllm
  source: {repository: example/small}
  memory: {total: %s}
  placement: {unit: Node}
`

// smallModel is such a model that needs 8 GiB.
var smallModel = strings.Replace(wholeNodeModel, "total: %s", "total: 8Gi", 1)

// ready returns "" if the model has this many replicas that are ready, on these nodes.
func (w *world) ready(name string, replicas int32, nodes ...string) string {
	w.Helper()
	m := w.model(name)
	have := w.nodesOf(name)
	if m.Status.ReadyReplicas != replicas || m.Status.ObservedGeneration != m.Generation || !slices.Equal(have, nodes) {
		return fmt.Sprintf("%s has %d ready replicas on %q, want %d on %q: %s; %s; %s", name, m.Status.ReadyReplicas, have, replicas, nodes, condition(m, v1alpha1.ConditionGroupSelected), condition(m, v1alpha1.ConditionPlaced), condition(m, v1alpha1.ConditionReady))
	}
	return ""
}

// TestExample is the worked example: a model that needs 8 GiB takes whole nodes of the group that
// wastes least memory and has a node for each replica. The group is chosen once.
func TestExample(t *testing.T) {
	w := newWorld(t)
	w.addExampleNodes()
	w.start()
	t.Run("one replica", func(t *testing.T) {
		w.Apply(fmt.Sprintf(smallModel, "small", 1))
		w.Eventually(func() string { return w.ready("small", 1, "a10-1") })
		m := w.model("small")
		if g := m.Status.Group; g == nil || g.Product != "A10" || g.Count != 1 || g.NodesPerReplica != 1 || m.Status.GroupName != "A10 × 1, 24 GiB each" {
			t.Errorf("the group is %+v, %q", g, m.Status.GroupName)
		}
		for _, c := range []string{v1alpha1.ConditionAdmitted, v1alpha1.ConditionGroupSelected, v1alpha1.ConditionPlaced, v1alpha1.ConditionReady} {
			if text := condition(m, c); !strings.HasPrefix(text, "True ") {
				t.Errorf("%s: %s", c, text)
			}
		}
		t.Log(w.Kubectl("", "get", "models"))
	})
	t.Run("a raise moves nothing", func(t *testing.T) {
		pods := w.podsOf("small")
		w.Kubectl("", "scale", "model", "small", "--replicas=2")
		w.Eventually(func() string {
			m := w.model("small")
			if text := condition(m, v1alpha1.ConditionPlaced); len(w.podsOf("small")) != 2 || !strings.HasPrefix(text, "False ") || m.Status.ReadyReplicas != 1 {
				return text
			}
			return ""
		})
		m := w.model("small")
		t.Log(condition(m, v1alpha1.ConditionPlaced))
		if m.Status.Group.Product != "A10" || !slices.ContainsFunc(w.podsOf("small"), func(p *corev1.Pod) bool { return p.UID == pods[0].UID && p.Spec.NodeName == "a10-1" }) {
			t.Errorf("the group is %+v, the pods are on %q", m.Status.Group, w.nodesOf("small"))
		}
		w.AddNodes(testcluster.Node("a10-2", 1, a10))
		w.Eventually(func() string { return w.ready("small", 2, "a10-1", "a10-2") })
	})
	t.Run("two replicas", func(t *testing.T) {
		w.Apply(fmt.Sprintf(smallModel, "two", 2))
		w.Eventually(func() string { return w.ready("two", 2, "a100-4-1", "a100-4-2") })
		w.remove("two")
	})
	t.Run("a replica on two nodes", func(t *testing.T) {
		w.Apply(fmt.Sprintf(wholeNodeModel, "large", 1, "300Gi"))
		w.Eventually(func() string { return w.ready("large", 1, "a100-4-1", "a100-4-2") })
		m := w.model("large")
		if m.Status.NodesPerReplica != 2 || len(m.Status.Workloads) != 1 || m.Status.Workloads[0].Kind != "LeaderWorkerSet" {
			t.Errorf("%d nodes for each replica, %+v", m.Status.NodesPerReplica, m.Status.Workloads)
		}
		leader, worker := w.Pods()["large-r0-0"], w.Pods()["large-r0-0-1"]
		if leader == nil || worker == nil {
			t.Fatalf("there are no pods large-r0-0 and large-r0-0-1: %v", slices.Collect(maps.Keys(w.Pods())))
		}
		t.Log(leader.Spec.Containers[0].Command, worker.Spec.Containers[0].Command)
		if command := worker.Spec.Containers[0].Command; !slices.Contains(command, "--headless") || !slices.Contains(command, "--nnodes") {
			t.Errorf("the command of the worker is %q", command)
		}
		w.remove("large")
	})
	t.Run("the group shrinks", func(t *testing.T) {
		w.Apply(fmt.Sprintf(smallModel, "two", 2))
		w.Eventually(func() string { return w.ready("two", 2, "a100-4-1", "a100-4-2") })
		for _, name := range []string{"a100-4-1", "a100-4-2"} {
			if err := w.Client.CoreV1().Nodes().Delete(w.Ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range w.podsOf("two") { // as the garbage collector of pods does later
			if err := w.Client.CoreV1().Pods(namespace).Delete(w.Ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
				t.Fatal(err)
			}
		}
		w.Eventually(func() string {
			if text := condition(w.model("two"), v1alpha1.ConditionGroupSelected); !strings.HasPrefix(text, "False GroupGone") {
				return text
			}
			return ""
		})
		t.Log(condition(w.model("two"), v1alpha1.ConditionGroupSelected))
		w.AddNodes(testcluster.Node("a100-4-3", 4, a100x40))
		w.Eventually(func() string { return w.ready("two", 1, "", "a100-4-3") })
		w.AddNodes(testcluster.Node("a100-4-4", 4, a100x40))
		w.Eventually(func() string { return w.ready("two", 2, "a100-4-3", "a100-4-4") })
	})
	t.Run("drift", func(t *testing.T) {
		w.Kubectl("", "scale", "deployment", "two", "--replicas=5")
		w.Kubectl("", "patch", "deployment", "two", "--type=json", "-p", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"other"},{"op":"remove","path":"/metadata/labels/berth.dev~1form"}]`)
		w.Eventually(func() string {
			d, err := w.Client.AppsV1().Deployments(namespace).Get(w.Ctx, "two", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if image := d.Spec.Template.Spec.Containers[0].Image; *d.Spec.Replicas != 2 || image == "other" || d.Labels["berth.dev/form"] == "" {
				return fmt.Sprintf("%d replicas of %s, labels %v", *d.Spec.Replicas, image, d.Labels)
			}
			return ""
		})
		w.Kubectl("", "delete", "deployment", "two")
		w.Eventually(func() string { return w.ready("two", 2, "a100-4-3", "a100-4-4") })
	})
	t.Run("the service", func(t *testing.T) {
		ports := func() string {
			return w.Kubectl("", "get", "service", "two", "--ignore-not-found", "-o", "jsonpath={.spec.ports[*].port} {.spec.selector}")
		}
		const want = `80 {"berth.dev/model":"two","berth.dev/serves":"true"}`
		w.Eventually(func() string { return cmp.Diff(want, ports()) })
		w.Kubectl("", "patch", "service", "two", "--type=json", "-p", `[{"op":"replace","path":"/spec/selector/berth.dev~1serves","value":"false"}]`)
		w.Eventually(func() string { return cmp.Diff(want, ports()) })
		w.Kubectl("", "delete", "service", "two")
		w.Eventually(func() string { return cmp.Diff(want, ports()) })
		// A Service of something else is left as it is, and the model says so.
		w.Kubectl("", "create", "service", "clusterip", "taken", "--tcp=5000:5000")
		w.Apply(fmt.Sprintf(smallModel, "taken", 1))
		w.Eventually(func() string {
			if text := condition(w.model("taken"), v1alpha1.ConditionReady); !strings.Contains(text, "The model has no Service: services default/taken exists and does not belong to the model") {
				return text
			}
			return ""
		})
		if text := w.Kubectl("", "get", "service", "taken", "-o", "jsonpath={.spec.ports[*].port} {.metadata.ownerReferences} {.spec.selector}"); text != `5000  {"app":"taken"}` {
			t.Errorf("the Service of something else was changed: %s", text)
		}
		w.Kubectl("", "delete", "service", "taken")
		w.Eventually(func() string {
			if text := w.Kubectl("", "get", "service", "taken", "--ignore-not-found", "-o", "name"); text == "" {
				return "there is no Service"
			}
			if text := condition(w.model("taken"), v1alpha1.ConditionReady); strings.Contains(text, "no Service") {
				return text
			}
			return ""
		})
	})
}

// remove deletes the model, and waits until its pods are gone.
func (w *world) remove(name string) {
	w.Helper()
	w.Kubectl("", "delete", "model", name)
	w.Eventually(func() string {
		for _, p := range w.Pods() {
			if p.Labels["berth.dev/model"] == name {
				return "pod " + p.Name + " is left"
			}
		}
		return ""
	})
}

// TestFewer scales models down: those replicas are removed that a simulation retires.
func TestFewer(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.AddNodes(testcluster.Node(fmt.Sprintf("l4-%d", i), 2, testcluster.L4), testcluster.Node(fmt.Sprintf("h100-%d", i), 4, testcluster.H100))
	}
	w.start("--devices-enforced")
	w.Apply(`apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: chat, namespace: default}
spec:
  replicas: 8
  source: {preset: llama-3.1-8b}
  context: 16384
  placement: {strategy: Spread}
`)
	w.Eventually(func() string {
		if m := w.model("chat"); m.Status.ReadyReplicas != 8 || len(m.Status.Replicas) != 8 {
			return w.state()
		}
		return ""
	})
	before := w.podsOf("chat")
	w.AddNodes(testcluster.Node("a100-1", 8, a100x40)) // nodes of another product restart nothing
	time.Sleep(3 * time.Second)
	if diff := cmp.Diff(uids(before), uids(w.podsOf("chat"))); diff != "" {
		t.Errorf("a node was added, and pods were replaced:\n%s", diff)
	}
	// A replica that is not ready is removed first. Without it, the other replica of its node is
	// worth more than those of nodes with two, which a simulation without its health would not know.
	unready := slices.IndexFunc(before, func(p *corev1.Pod) bool {
		return p.Spec.NodeName == "l4-0" && p.Annotations[feed.AnnotationVisibleDevices] == "1"
	})
	if unready < 0 {
		t.Fatalf("no replica is on the second device of l4-0: %v", w.nodesOf("chat"))
	}
	w.setReady(before[unready], false)
	for _, replicas := range []int{6, 3, 1} {
		w.Eventually(func() string { // the status shows what the pods are
			for _, r := range w.model("chat").Status.Replicas {
				if len(r.Placements) == 0 || r.State == "" {
					return "the status is not complete"
				}
			}
			return ""
		})
		want := w.keptAfter("chat", replicas)
		w.Kubectl("", "scale", "model", "chat", fmt.Sprintf("--replicas=%d", replicas))
		w.Eventually(func() string {
			var have []string
			for _, p := range w.podsOf("chat") {
				have = append(have, p.Name)
			}
			if len(have) > replicas {
				return fmt.Sprintf("%d pods are left", len(have))
			}
			return cmp.Diff(want, have)
		})
		w.Eventually(func() string {
			if m := w.model("chat"); int(m.Status.CurrentReplicas) != replicas {
				return fmt.Sprintf("%d replicas", m.Status.CurrentReplicas)
			}
			return ""
		})
	}
}

func uids(pods []*corev1.Pod) (out []types.UID) {
	for _, p := range pods {
		out = append(out, p.UID)
	}
	return out
}

// setReady sets the condition Ready of a pod.
func (w *world) setReady(p *corev1.Pod, ready bool) {
	w.Helper()
	status := "False"
	if ready {
		status = "True"
	}
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q},{"type":"ContainersReady","status":%q}]}}`, status, status)
	if _, err := w.Client.CoreV1().Pods(namespace).Patch(w.Ctx, p.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		w.Fatal(err)
	}
	w.Eventually(func() string {
		for _, r := range w.model(p.Labels["berth.dev/model"]).Status.Replicas {
			if slices.Contains(r.Pods, p.Name) && (r.State == "Running") == ready {
				return ""
			}
		}
		return "the status does not show that the pod is not ready"
	})
}

// keptAfter returns the pods that a simulation of the objects as they are would keep, sorted.
func (w *world) keptAfter(name string, replicas int) []string {
	w.Helper()
	b, err := manifest.Parse("f", []byte(w.Kubectl("", "get", "nodes,models", "-o", "yaml")))
	if err != nil {
		w.Fatal(err)
	}
	var m *v1alpha1.Model
	for _, o := range b.Models {
		if o.Name == name {
			m = o
		}
	}
	m.Spec.Replicas = &replicas
	state, err := b.State()
	if err != nil {
		w.Fatal(err)
	}
	e, err := scenario.Engine(standard.Registry(), b)
	if err != nil {
		w.Fatal(err)
	}
	simulation, err := sim.Simulate(e, state, sim.Options{Now: b.Now()})
	if err != nil {
		w.Fatal(err)
	}
	retired := map[string]bool{}
	for _, o := range simulation.RetirementOrders {
		for _, j := range o.Jobs {
			retired[j.Job] = j.Retired
		}
	}
	var out []string
	for _, r := range m.Status.Replicas {
		if is, known := retired[fmt.Sprintf("model/%s/%s-%d", namespace, name, r.Replica)]; !known {
			w.Fatalf("replica %d is not ranked: %v", r.Replica, retired)
		} else if !is {
			out = append(out, r.Pods...)
		}
	}
	slices.Sort(out)
	return out
}
