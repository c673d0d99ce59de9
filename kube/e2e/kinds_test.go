package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/testcluster"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestJob places the pods of an Indexed Job as a gang: none of them before there is room for
// all.
func TestJob(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.addNodes(1)
	g := w.watchGangs(4)
	w.scheduler()
	w.create(pod("first", 8))
	w.eventually(func() string { return w.allBound("first") })
	indexed := batchv1.IndexedCompletion
	count := int32(4)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: namespace},
		Spec: batchv1.JobSpec{
			Completions: &count, Parallelism: &count, CompletionMode: &indexed,
			Template: corev1.PodTemplateSpec{Spec: pod("", 4).Spec},
		},
	}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if _, err := w.client.BatchV1().Jobs(namespace).Create(w.ctx, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pending := func() string {
		n := 0
		for name, p := range w.pods() {
			if strings.HasPrefix(name, "train-") {
				if p.Spec.NodeName != "" {
					t.Fatalf("pod %s is bound although there is no room for the gang", name)
				}
				if strings.HasPrefix(conditionText(p), "False Unschedulable: ") {
					n++
				}
			}
		}
		if n != 4 {
			return fmt.Sprintf("%d pods of the Job are unschedulable, want 4", n)
		}
		return ""
	}
	w.eventually(pending)
	if n := g.most("train"); n > 0 {
		t.Errorf("%d pods of the Job were bound although there was no room for the gang", n)
	}
	if err := w.cp.AddNodes(w.ctx, gpuNode("more-0"), gpuNode("more-1")); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() string {
		j, err := w.client.BatchV1().Jobs(namespace).Get(w.ctx, "train", metav1.GetOptions{})
		if err != nil || j.Status.Succeeded != 4 {
			return fmt.Sprintf("the Job has not succeeded: %v, %+v", err, j.Status)
		}
		return ""
	})
	w.eventually(g.check)
}

// definition returns the definition of a kind of another project, without a schema.
func definition(group, version, kind string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[4]ss.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[4]ss, singular: %[4]s, listKind: %[3]sList}
  versions:
  - name: %[2]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
`, group, version, kind, strings.ToLower(kind))
}

// TestOtherKinds checks that berth-scheduler reads each kind of other projects that describes groups
// of pods, and has the permission.
func TestOtherKinds(t *testing.T) {
	w := newWorld(t)
	var definitions strings.Builder
	for _, k := range feed.GroupKinds() {
		definitions.WriteString(definition(k.Group, "v1", k.Kind))
	}
	w.apply(definitions.String())
	w.kubectl("", "wait", "--for=condition=Established", "crd", "--all")
	w.scheduler()
	w.eventually(func() string {
		sent := w.RequestsOf(schedulerUser)
		for _, k := range feed.GroupKinds() {
			if sent[testcluster.Permission{Verb: "watch", Group: k.Group, Resource: strings.ToLower(k.Kind) + "s"}] == 0 {
				return fmt.Sprintf("%s is not read", k)
			}
		}
		return ""
	})
}

// TestPartitions places pods on MIG slices and on the replicas of time-sliced devices.
func TestPartitions(t *testing.T) {
	w := newWorld(t)
	const slice = "nvidia.com/mig-3g.40gb"
	mig := controlplane.Node{
		Name:        "mig",
		Labels:      map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "81559", "nvidia.com/mig.capable": "true", "nvidia.com/mig.strategy": "mixed", "nvidia.com/mig-3g.40gb.count": "4", "nvidia.com/mig-3g.40gb.memory": "40320"},
		Allocatable: corev1.ResourceList{slice: resource.MustParse("4")},
	}
	shared := controlplane.Node{
		Name: "shared",
		Labels: map[string]string{
			"nvidia.com/gpu.product": "NVIDIA-A10-SHARED", "nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "23028",
			"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing",
		},
		Allocatable: corev1.ResourceList{gpu: resource.MustParse("8")},
	}
	if err := w.cp.AddNodes(w.ctx, mig, shared); err != nil {
		t.Fatal(err)
	}
	w.scheduler()
	for i := range 5 {
		w.create(pod(fmt.Sprintf("slice-%d", i), 0, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{slice: resource.MustParse("1")}
		}))
	}
	for i := range 9 {
		w.create(pod(fmt.Sprintf("replica-%d", i), 1))
	}
	w.eventually(func() string {
		bound := map[string]int{}
		for name, p := range w.pods() {
			if p.Spec.NodeName == "" && !strings.HasPrefix(conditionText(p), "False Unschedulable") {
				return name + ": " + conditionText(p)
			}
			if p.Spec.NodeName != "" {
				bound[p.Spec.NodeName]++
			}
		}
		if bound["mig"] != 4 || bound["shared"] != 8 {
			return fmt.Sprintf("%v pods are bound, want 4 and 8", bound)
		}
		return ""
	})
}

// TestDryRun decides beside another scheduler, and changes nothing.
func TestDryRun(t *testing.T) {
	w := newWorld(t)
	w.addNodes(2)
	p := w.scheduler("--dry-run", "--scheduler-name", corev1.DefaultSchedulerName, "--leader-elect=false")
	w.create(pod("a", 1, func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName }), pod("b", 9, func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName }))
	w.eventually(func() string {
		text, err := os.ReadFile(p.log)
		for _, want := range []string{`"msg":"A pod would be bound.","pod":"default/a","node":"node-000`, `"msg":"A job would stay pending.","job":"pod/default/b"`} {
			if err != nil || !strings.Contains(string(text), want) {
				return fmt.Sprintf("no %s in the log: %v", want, err)
			}
		}
		return ""
	})
	for name, p := range w.pods() {
		if p.Spec.NodeName != "" || conditionText(p) != "no condition" {
			t.Errorf("pod %s is on node %q: %s", name, p.Spec.NodeName, conditionText(p))
		}
	}
	w.bindByHand("a", "node-0000", "") // as the other scheduler does
	w.eventually(func() string {
		text, err := os.ReadFile(p.log)
		if want := `"msg":"Another scheduler has bound a pod.","pod":"default/a","node":"node-0000","would":"node-000`; err != nil || !strings.Contains(string(text), want) {
			return fmt.Sprintf("no %s in the log: %v", want, err)
		}
		return ""
	})
}

// TestOtherSchedulers checks that pods of other schedulers are bound while Berth is down, and
// that Berth counts them.
func TestOtherSchedulers(t *testing.T) {
	w := newWorld(t, controlplane.Scheduler)
	w.addNodes(1)
	other := func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName }
	w.create(pod("theirs", 6, other), pod("ours", 3))
	w.eventually(func() string { return w.allBound("theirs") })
	time.Sleep(time.Second)
	if p := w.pods()["ours"]; p.Spec.NodeName != "" {
		t.Fatalf("pod ours is on %s although no scheduler is responsible for it", p.Spec.NodeName)
	}
	w.scheduler()
	w.eventually(func() string {
		if text := conditionText(w.pods()["ours"]); !strings.HasPrefix(text, "False Unschedulable: 0/1 nodes: 1 InsufficientDevices") {
			return "pod ours: " + text
		}
		return ""
	})
	if err := w.client.CoreV1().Pods(namespace).Delete(w.ctx, "theirs", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() string { return w.allBound("ours") })
}
