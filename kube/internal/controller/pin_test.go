package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// served returns a model with the fields of a spec and, if given, a status.
func served(spec, status string) *unstructured.Unstructured {
	text := "apiVersion: berth.dev/v1alpha1\nkind: Model\nmetadata: {namespace: ml, name: chat, uid: chat, creationTimestamp: \"2026-01-01T00:00:00Z\"}\nspec: {backend: vllm, " + spec + "}\n"
	if status != "" {
		text += "status: " + status + "\n"
	}
	return object(text)
}

// plan returns the plan of the only model.
func (w *claimWorld) plan() *plan {
	w.t.Helper()
	plans, err := w.plans()
	if err != nil {
		w.t.Fatal(err)
	}
	if len(plans) != 1 || plans[0].invalid != nil {
		w.t.Fatalf("%d plans, the first of which is invalid: %v", len(plans), plans[0].invalid)
	}
	return plans[0]
}

// carryOut puts the Deployments of the plan and a running pod for each of their replicas, on the
// nodes in turn, as the API server and berth-scheduler would.
func (w *claimWorld) carryOut(p *plan, nodes ...string) (pods []*corev1.Pod) {
	w.t.Helper()
	for _, o := range p.deployments {
		d := deploymentOf(w.t, o)
		d.UID, d.Generation = types.UID(d.Name), 1
		w.put(strip(d))
		for i := range int(*d.Spec.Replicas) {
			pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: *d.Spec.Template.Spec.DeepCopy()}
			pod.Namespace, pod.Name, pod.ResourceVersion = d.Namespace, fmt.Sprintf("%s-%d", d.Name, i), "1"
			pod.UID, pod.Spec.NodeName = types.UID(pod.Name), nodes[i%len(nodes)]
			pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
			w.put(pod)
			pods = append(pods, pod)
		}
	}
	return pods
}

func deploymentOf(t testing.TB, o *unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// applied returns the Deployments and LeaderWorkerSets of the plan as they are applied.
func (p *plan) applied(t *testing.T) string {
	t.Helper()
	text, err := json.MarshalIndent(append(p.deployments, p.sets...), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestNodesDoNotChangeTemplates adds and removes nodes of other products: what runs is not changed,
// whatever a template that was made now would have.
func TestNodesDoNotChangeTemplates(t *testing.T) {
	for _, spec := range []string{"replicas: 2, source: {preset: llama-3.1-8b}, context: 16384", "replicas: 2, source: {preset: llama-3.1-8b}"} {
		w := newClaimWorld(t)
		w.put(gpuNode("l4-1", "NVIDIA-L4", 2, 23034), served(spec, ""))
		p := w.plan()
		before := p.applied(t)
		w.carryOut(p, "l4-1")
		check := func(what string) {
			t.Helper()
			if diff := cmp.Diff(before, w.plan().applied(t)); diff != "" {
				t.Errorf("%s, %s:\n%s", spec, what, diff)
			}
		}
		check("nothing changes")
		other := gpuNode("h100-1", "NVIDIA-H100-80GB-HBM3", 8, 81559)
		w.put(other)
		check("a node of another product is added")
		again := newClaimWorld(t) // another process begins to lead
		again.put(gpuNode("l4-1", "NVIDIA-L4", 2, 23034), other, served(spec, ""))
		again.carryOut(p, "l4-1")
		if diff := cmp.Diff(before, again.plan().applied(t)); diff != "" {
			t.Errorf("%s, after a restart:\n%s", spec, diff)
		}
		w.drop(other)
		check("it is removed")
		unlabelled := gpuNode("l4-1", "NVIDIA-L4", 2, 23034)
		unlabelled.Labels, unlabelled.ResourceVersion = nil, "2"
		w.put(unlabelled)
		p = w.plan() // no form is known now: nothing is applied, and the Deployment keeps its replicas
		if len(p.removeDeployments) > 0 || len(p.deployments) > 0 && p.applied(t) != before {
			t.Errorf("%s, the labels are gone: %v is removed, %s applied", spec, p.removeDeployments, p.applied(t))
		}
		labelled := gpuNode("l4-1", "NVIDIA-L4", 2, 23034)
		labelled.ResourceVersion = "3"
		w.put(labelled)
		check("the labels are back")
		w.put(served(strings.Replace(spec, "replicas: 2", "replicas: 2, server: {args: [--seed=1]}", 1), ""))
		if w.plan().applied(t) == before {
			t.Errorf("%s: a change of the spec changes nothing", spec)
		}
	}
}

// TestGroupIsKept takes the labels of the nodes of a group away: the replicas that run are not
// changed, and none is planned elsewhere.
func TestGroupIsKept(t *testing.T) {
	const spec = "replicas: 1, source: {repository: example/m}, memory: {total: 8Gi}, placement: {unit: Node}"
	const status = "{group: {product: NVIDIA-L4, count: 1, memory: 23034Mi, resource: nvidia.com/gpu, nodesPerReplica: 1}}"
	w := newClaimWorld(t)
	w.put(gpuNode("l4-1", "NVIDIA-L4", 1, 23034), gpuNode("a10-1", "NVIDIA-A10", 1, 23028), served(spec, status))
	p := w.plan()
	before := p.applied(t)
	w.carryOut(p, "l4-1")
	unlabelled := gpuNode("l4-1", "NVIDIA-L4", 1, 23034)
	unlabelled.Labels, unlabelled.ResourceVersion = nil, "2"
	w.put(unlabelled)
	p = w.plan()
	if len(p.deployments) > 0 || len(p.removeDeployments) > 0 || p.scaled["chat"] != 1 {
		t.Errorf("the labels are gone: %s is applied, %v removed, %v scaled", p.applied(t), p.removeDeployments, p.scaled)
	}
	labelled := gpuNode("l4-1", "NVIDIA-L4", 1, 23034)
	labelled.ResourceVersion = "3"
	w.put(labelled)
	if diff := cmp.Diff(before, w.plan().applied(t)); diff != "" {
		t.Errorf("the labels are back:\n%s", diff)
	}
	w.put(served(spec+", schedulerName: other", status)) // not valid for a while
	plans, err := w.plans()
	if err != nil || plans[0].invalid == nil {
		t.Fatal("the model is valid", err)
	}
	if s := plans[0].status(nil); s.Group == nil {
		t.Error("the group of a model that is not valid is forgotten")
	}
}

// TestFormsOfNewSpec changes a spec so that no replica can keep its form: they are replaced one
// after the other.
func TestFormsOfNewSpec(t *testing.T) {
	w := newClaimWorld(t)
	w.put(gpuNode("h100-1", "NVIDIA-H100-80GB-HBM3", 8, 81559), served("replicas: 2, source: {repository: example/m}, memory: {device: 40Gi}, parallelism: {tensor: 1}, placement: {distributed: false}", ""))
	p := w.plan()
	pods := w.carryOut(p, "h100-1")
	name := p.deployments[0].GetName()
	w.put(served("replicas: 2, source: {repository: example/m}, memory: {device: 40Gi}, parallelism: {tensor: 2}, placement: {distributed: false}", ""))
	if p = w.plan(); p.scaled[name] != 1 || len(p.deployments) != 0 {
		t.Fatalf("%v scaled, %s applied", p.scaled, p.applied(t))
	}
	w.drop(pods[1])
	p = w.plan()
	if p.scaled[name] != 1 || len(p.deployments) != 1 || replicasOf(p.deployments[0]) != 1 {
		t.Fatalf("%v scaled, %s applied", p.scaled, p.applied(t))
	}
	w.carryOut(p, "h100-1")
	if p = w.plan(); p.scaled[name] != 0 || len(p.removeDeployments) != 1 {
		t.Fatalf("%v scaled, %v removed", p.scaled, p.removeDeployments)
	}
}

// TestObjectsLeaveModels takes the label and the owner from objects of a model: they are no longer
// among its objects, and their deletion is noted.
func TestObjectsLeaveModels(t *testing.T) {
	w := newClaimWorld(t)
	w.put(gpuNode("l4-1", "NVIDIA-L4", 2, 23034), served("replicas: 1, source: {preset: llama-3.1-8b}, context: 16384", ""))
	p := w.plan()
	pods := w.carryOut(p, "l4-1")
	left := pods[0].DeepCopy()
	left.Labels, left.ResourceVersion = nil, "2"
	w.put(left)
	if p = w.plan(); p.placed() != 0 || len(p.answer.Replicas) != 1 {
		t.Errorf("a pod without the label: %d replicas are placed, %d missing", p.placed(), len(p.answer.Replicas))
	}
	w.drop(left)
	if s := w.plan().status(nil); s.ReadyReplicas != 0 {
		t.Errorf("%d replicas are ready, and no pod exists", s.ReadyReplicas)
	}
	d := deploymentOf(t, p.deployments[0])
	d.UID, d.OwnerReferences = types.UID(d.Name), nil
	w.put(strip(d))
	if !w.isOther(deployments, d) {
		t.Error("a Deployment without an owner counts as one of the model")
	}
	w.drop(strip(d))
	if x := w.objectsOf(p.key); len(x.deployments)+len(x.pods) != 0 || w.isOther(deployments, d) || len(w.listed) != 0 {
		t.Errorf("%d Deployments and %d pods are known, and none exists", len(x.deployments), len(x.pods))
	}
}

// TestOnlyMessages compares statuses.
func TestOnlyMessages(t *testing.T) {
	status := func(reason, message string) *v1alpha1.ModelStatus {
		return &v1alpha1.ModelStatus{Conditions: []metav1.Condition{{Type: "Placed", Reason: reason, Message: message}}}
	}
	for _, c := range []struct {
		a, b *v1alpha1.ModelStatus
		want bool
	}{
		{status("A", "x"), status("A", "x"), false},
		{status("A", "x"), status("A", "y"), true},
		{status("A", "x"), status("B", "y"), false},
		{&v1alpha1.ModelStatus{}, status("A", "y"), false},
	} {
		if got := onlyMessages(c.a, c.b); got != c.want {
			t.Errorf("onlyMessages(%v, %v) = %t", c.a.Conditions, c.b.Conditions, got)
		}
	}
}
