package ctl_test

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestTrials checks that the filters of Kubernetes judge the changes that why tries: without
// that, none of these would help, because the objects of the cluster stay as they are.
func TestTrials(t *testing.T) {
	w := newWorld(t)
	inZone := func(zone string) func(*controlplane.Node) {
		return func(n *controlplane.Node) { n.Labels["zone"] = zone }
	}
	w.addNodes(node("closed", 8, inZone("a")), node("open", 4, inZone("b")))
	patch := []byte(`{"spec":{"unschedulable":true}}`)
	if _, err := w.client.CoreV1().Nodes().Patch(w.ctx, "closed", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	required := func(zone string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}},
			}}}
		}
	}
	spread := func(p *corev1.Pod) {
		p.Labels["app"] = "spread"
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "spread"}},
		}}
	}
	w.create(pod("spread-0", 1, spread))
	w.bind("spread-0", "open")
	w.create(
		pod("affinity", 1, required("c")), pod("large", 8), pod("selector", 1, withSelector("zone", "bb")),
		pod("spread-1", 1, spread, withSelector("zone", "b"), withHostPort(80)), pod("spread-2", 1, spread, withSelector("zone", "b"), withHostPort(80)),
	)
	for name, want := range map[string]string{
		"affinity": "✓ without the required node affinity",
		"large":    "✓ with closed ready and uncordoned",
		"selector": "✓ with the node selector zone=b instead of bb",
		"spread-2": "✓ with one more node of NVIDIA-L4 × 4",
	} {
		if text := w.answer("why", name); !strings.Contains(text, want) {
			t.Errorf("why %s does not say %q:\n%s", name, want, text)
		}
	}
}
