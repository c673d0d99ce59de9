package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berth-project/berth/kube/internal/controlplane"
)

// TestPreemption evicts preemptible pods for one of a higher priority, and none that a
// disruption budget protects. The victims learn for which job they were evicted.
func TestPreemption(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.addNodes(2)
	w.addClasses()
	all := intstr.FromInt32(8)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: namespace},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"kept": "yes"}}},
	}
	if _, err := w.client.PolicyV1().PodDisruptionBudgets(namespace).Create(w.ctx, budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.scheduler()
	kept := func(p *corev1.Pod) { p.Labels["kept"] = "yes" }
	for i := range 8 {
		w.create(pod(fmt.Sprintf("kept-%d", i), 1, preemptible, withPriority("low"), kept))
	}
	w.eventually(func() string { return w.allBound("kept-") })
	for i := range 8 {
		w.create(pod(fmt.Sprintf("victim-%d", i), 1, preemptible, withPriority("low")))
	}
	w.eventually(func() string { return w.allBound("victim-") })
	w.eventually(func() string { // the controller counts the pods that the budget protects
		b, err := w.client.PolicyV1().PodDisruptionBudgets(namespace).Get(w.ctx, "kept", metav1.GetOptions{})
		if err != nil || b.Status.CurrentHealthy != 8 {
			return fmt.Sprintf("budget: %v, %+v", err, b.Status)
		}
		return ""
	})
	w.create(pod("important", 4, withPriority("high")))
	w.eventually(func() string { return w.allBound("important") })
	victims := 0
	for name := range w.pods() {
		if strings.HasPrefix(name, "victim-") {
			victims++
		}
	}
	if victims != 4 {
		t.Errorf("%d victims run, want 4", victims)
	}
	for i := range 8 {
		if w.pods()[fmt.Sprintf("kept-%d", i)] == nil {
			t.Errorf("pod kept-%d was evicted", i)
		}
	}
	w.checkRoom()
	w.eventually(func() string {
		list, err := w.client.CoreV1().Events(namespace).List(w.ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, e := range list.Items {
			if e.Reason == "Preempted" && strings.HasPrefix(e.InvolvedObject.Name, "victim-") && strings.Contains(e.Message, "important") {
				t.Log(e.Message)
				return ""
			}
		}
		return "no event on a victim names the job important"
	})
}
