package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestPods checks what every pod of every example has beyond the restricted Pod Security Standard,
// which TestApply checks.
func TestPods(t *testing.T) {
	for example, args := range examples(t) {
		list := deployments(t, render(t, args...))
		if len(list) != 2 {
			t.Errorf("%s: %d Deployments, want 2", example, len(list))
		}
		for _, d := range list {
			pod, c := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
			yes, no := true, false
			want := &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, RunAsNonRoot: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}
			if diff := cmp.Diff(want, c.SecurityContext); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", example, d.Name, diff)
			}
			if pod.PriorityClassName != "system-cluster-critical" || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: %s: priority class %q, seccomp profile %v", example, d.Name, pod.PriorityClassName, pod.SecurityContext.SeccompProfile)
			}
			if c.LivenessProbe.HTTPGet.Path != "/livez" || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
				t.Errorf("%s: %s: probes %v and %v", example, d.Name, c.LivenessProbe, c.ReadinessProbe)
			}
			if c.Resources.Requests.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: %s: resources %v", example, d.Name, c.Resources)
			}
			if s := pod.TopologySpreadConstraints; len(s) == 0 || s[0].TopologyKey != corev1.LabelHostname || !cmp.Equal(s[0].LabelSelector.MatchLabels, d.Spec.Selector.MatchLabels) {
				t.Errorf("%s: %s: spread %v", example, d.Name, s)
			}
		}
	}
}
