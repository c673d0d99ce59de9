package controller

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// carryOutSets puts the LeaderWorkerSets of the plan and their running pods, on the nodes in turn.
func (w *claimWorld) carryOutSets(p *plan, nodes ...string) map[string][]*corev1.Pod {
	w.t.Helper()
	out := map[string][]*corev1.Pod{}
	for _, set := range p.sets {
		set = set.DeepCopy()
		set.SetUID(types.UID(set.GetName()))
		set.SetGeneration(1)
		w.put(strip(set))
		for i := range sizeOf(set) {
			field := "workerTemplate"
			if i == 0 {
				field = "leaderTemplate"
			}
			fields, _, _ := unstructured.NestedMap(set.Object, "spec", "leaderWorkerTemplate", field)
			var template corev1.PodTemplateSpec
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &template); err != nil {
				w.t.Fatal(err)
			}
			pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
			pod.Namespace, pod.Name, pod.ResourceVersion = set.GetNamespace(), fmt.Sprintf("%s-0-%d", set.GetName(), i), "1"
			pod.Labels["leaderworkerset.sigs.k8s.io/name"], pod.Labels["leaderworkerset.sigs.k8s.io/group-index"] = set.GetName(), "0"
			pod.Labels["leaderworkerset.sigs.k8s.io/worker-index"] = fmt.Sprint(i)
			pod.UID, pod.Spec.NodeName = types.UID(pod.Name), nodes[0]
			nodes = nodes[1:]
			pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
			w.put(pod)
			out[set.GetName()] = append(out[set.GetName()], pod)
		}
	}
	return out
}

// addH100 adds nodes, and returns their names.
func (w *claimWorld) addH100(n int) (names []string) {
	for i := range n {
		name := fmt.Sprintf("h100-%d", i)
		w.put(gpuNode(name, "NVIDIA-H100-80GB-HBM3", 8, 81559))
		names = append(names, name)
	}
	return names
}

const onTwoNodes = "source: {repository: example/m}, memory: {device: 40Gi}, parallelism: {tensor: 8, pipeline: 2}, placement: {distributed: true}"

// seeds returns which of the LeaderWorkerSets of the plan have the new argument.
func seeds(p *plan) (out []string) {
	for _, set := range p.sets {
		if strings.Contains(fmt.Sprint(set.Object["spec"]), "--seed=1") {
			out = append(out, set.GetName())
		}
	}
	return out
}

func notReadyPod(p *corev1.Pod) *corev1.Pod {
	out := p.DeepCopy()
	out.ResourceVersion = "2"
	out.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	return out
}

// TestSetsAreKept changes the nodes and the spec of a model with replicas on several nodes: nodes
// change nothing, and a change of the spec is carried out for one replica after the other.
func TestSetsAreKept(t *testing.T) {
	w := newClaimWorld(t)
	nodes := w.addH100(6)
	w.put(served("replicas: 3, "+onTwoNodes, ""))
	p := w.plan()
	before := p.applied(t)
	pods := w.carryOutSets(p, nodes...)
	check := func(what string) {
		t.Helper()
		if diff := cmp.Diff(before, w.plan().applied(t)); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
	check("nothing changes")
	w.put(gpuNode("l4-1", "NVIDIA-L4", 8, 23034))
	check("a node of another product is added")
	for _, name := range nodes {
		n := gpuNode(name, "NVIDIA-H100-80GB-HBM3", 8, 81559)
		n.Labels, n.ResourceVersion = nil, "2"
		w.put(n)
	}
	if p = w.plan(); len(p.removeSets) > 0 {
		t.Errorf("the labels of the nodes are gone: %v are removed", p.removeSets)
	}
	for _, name := range nodes {
		n := gpuNode(name, "NVIDIA-H100-80GB-HBM3", 8, 81559)
		n.ResourceVersion = "3"
		w.put(n)
	}
	check("the labels are back")

	w.put(served("replicas: 3, server: {args: [--seed=1]}, "+onTwoNodes, ""))
	if p = w.plan(); len(p.sets) != 3 || cmp.Diff([]string{"chat-r0"}, seeds(p)) != "" {
		t.Errorf("of %d replicas, %v follow the spec", len(p.sets), seeds(p))
	}
	renewed := p.sets[0].DeepCopy()
	renewed.SetUID("chat-r0")
	w.put(strip(renewed), notReadyPod(pods["chat-r0"][0]))
	if p = w.plan(); cmp.Diff([]string{"chat-r0"}, seeds(p)) != "" {
		t.Errorf("one is not ready, and %v follow the spec", seeds(p))
	}
	ready := pods["chat-r0"][0].DeepCopy()
	ready.ResourceVersion = "3"
	w.put(ready)
	if p = w.plan(); len(seeds(p)) != 2 {
		t.Errorf("all are ready, and %v follow the spec", seeds(p))
	}
}

// TestOutdatedReplicas changes a spec so that no replica can keep its form.
func TestOutdatedReplicas(t *testing.T) {
	w := newClaimWorld(t)
	nodes := w.addH100(4)
	w.put(served("replicas: 2, "+onTwoNodes, ""))
	pods := w.carryOutSets(w.plan(), nodes...)
	w.put(served("replicas: 2, "+strings.Replace(onTwoNodes, "pipeline: 2", "pipeline: 1", 1), ""))
	if p := w.plan(); cmp.Diff([]string{"chat-r1"}, p.removeSets) != "" {
		t.Errorf("%v are removed", p.removeSets)
	}
	w.put(notReadyPod(pods["chat-r0"][0]))
	if p := w.plan(); cmp.Diff([]string{"chat-r0"}, p.removeSets) != "" {
		t.Errorf("chat-r0 is not ready, and %v are removed", p.removeSets)
	}
	for _, to := range []string{"parallelism: {tensor: 16}, placement: {distributed: false}", "parallelism: {tensor: 2}, placement: {distributed: false, nodeSelector: {pool: none}}"} {
		w := newClaimWorld(t)
		w.addH100(1)
		w.put(served("replicas: 1, source: {repository: example/m}, memory: {device: 40Gi}, parallelism: {tensor: 1}, placement: {distributed: false}", ""))
		w.carryOut(w.plan(), "h100-0")
		w.put(served("replicas: 1, source: {repository: example/m}, memory: {device: 40Gi}, "+to, ""))
		if p := w.plan(); len(p.removeDeployments) > 0 {
			t.Errorf("%s can never be placed, and %v are removed", to, p.removeDeployments)
		}
	}
}

// TestPins reads pins that are damaged, of another model, or too large.
func TestPins(t *testing.T) {
	w := newClaimWorld(t)
	w.put(gpuNode("l4-1", "NVIDIA-L4", 2, 23034), served("replicas: 1, source: {preset: llama-3.1-8b}, context: 16384", ""))
	p := w.plan()
	d := deploymentOf(t, p.deployments[0])
	if o, inputs := p.pinned(d); o == nil || inputs != p.inputs {
		t.Fatal("a Deployment has no pin")
	}
	text := d.Annotations[annotationApplied]
	for name, annotation := range map[string]string{"none": "", "no base64": "{}", "cut": text[:len(text)/2], "no compression": "aGVsbG8="} {
		d.Annotations[annotationApplied] = annotation
		if o, _ := p.pinned(d); o != nil {
			t.Errorf("%s: the pin is %v", name, o)
		}
	}
	d.Annotations[annotationApplied] = text
	p.model.UID = "another"
	if o, _ := p.pinned(d); o != nil {
		t.Error("the pin of an earlier model of the same name is used")
	}
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, maxPin)
	for i := range noise {
		noise[i] = byte('!' + random.IntN(90))
	}
	large := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"text": string(noise)}}}
	if err := pinTo(large, "x"); err != nil || len(large.GetAnnotations()) > 0 {
		t.Errorf("a pin of %d bytes: %v", len(large.GetAnnotations()[annotationApplied]), err)
	}
}

// TestInputs changes what users choose, and what they do not.
func TestInputs(t *testing.T) {
	w := newClaimWorld(t)
	w.put(gpuNode("l4-1", "NVIDIA-L4", 2, 23034), served("replicas: 1, source: {preset: llama-3.1-8b}, context: 16384", ""))
	m, o := w.plan().model, w.options.Workload
	was := inputs(m, &o)
	m.Labels, m.Spec.Replicas, m.ResourceVersion = map[string]string{"a": "b"}, new(7), "9"
	if inputs(m, &o) != was {
		t.Error("labels and the number of replicas change the inputs")
	}
	o.SchedulerName = "other"
	if inputs(m, &o) == was {
		t.Error("another scheduler name does not change the inputs of a model that names none")
	}
	m.Spec.SchedulerName = "own"
	named := inputs(m, &o)
	o.SchedulerName = "third"
	if inputs(m, &o) != named || named == was {
		t.Error("another scheduler name changes the inputs of a model that names its own")
	}
}
