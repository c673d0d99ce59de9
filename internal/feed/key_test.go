package feed

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
)

// TestShapeKey checks that pods which request the same and differ in what only filters of
// kube-scheduler read have different shapes, and that a pod keeps its shape when it starts: a
// new shape would book the task anew.
func TestShapeKey(t *testing.T) {
	port := func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	}
	f := New(testOptions)
	key := func(p *corev1.Pod) string {
		changes, _ := f.PutPod(p)
		return changes[0].(cluster.JobPut).Job.Alternatives[0].Tasks[0].Shape.Key
	}
	if a, b := key(onePod("a", "1")), key(onePod("b", "2", port)); a == b || a != "" {
		t.Errorf("the keys are %q and %q", a, b)
	}
	changes, _ := f.PutPod(onePod("b", "2", port, onNode))
	if len(changes) != 1 {
		t.Fatalf("the pod started: %+v", changes)
	}
	if seen, is := changes[0].(cluster.TaskSeen); !is || seen.Node == "" {
		t.Errorf("the pod started: %+v", changes)
	}
}
