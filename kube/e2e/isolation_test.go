package e2e

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/kube/internal/testcluster"
	corev1 "k8s.io/api/core/v1"
)

// TestIsolation checks that pods with an isolation class are placed only on nodes that offer it,
// and that a pod whose annotation cannot be read is not placed.
func TestIsolation(t *testing.T) {
	w := newWorld(t)
	plain, offers := gpuNode("a-plain"), gpuNode("b-offers")
	offers.Annotations = map[string]string{v1alpha1.AnnotationIsolation: `{"gpu": ["DeviceExclusive"]}`}
	if err := w.cp.AddNodes(w.ctx, plain, offers); err != nil {
		t.Fatal(err)
	}
	w.scheduler()
	requests := func(text string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationIsolation] = text }
	}
	w.create(pod("exclusive", 1, requests(`{"gpu": "DeviceExclusive"}`)), pod("strict", 1, requests(`{"cpu": "StrictIsolated"}`)), pod("garbled", 1, requests(`DeviceExclusive`)))
	w.eventually(func() string { return w.allBound("exclusive") })
	if node := w.pods()["exclusive"].Spec.NodeName; node != "b-offers" {
		t.Errorf("the pod is on node %s, which does not offer its class", node)
	}
	for name, want := range map[string]string{"strict": "StrictIsolated", "garbled": `want JSON such as {"gpu": "DeviceExclusive"}`} {
		w.eventually(func() string {
			p := w.pods()[name]
			if text := testcluster.ConditionText(p); p.Spec.NodeName != "" || !strings.Contains(text, want) {
				return name + ": " + text
			}
			return ""
		})
	}
}
