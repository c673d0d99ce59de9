package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const finalizer = "berth.dev/test"

// addClasses adds the priority classes low and high.
func (w *world) addClasses() {
	w.Helper()
	for name, value := range map[string]int32{"low": 10, "high": 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := w.client.SchedulingV1().PriorityClasses().Create(w.ctx, class, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

// TestRecovery kills the scheduler while victims stop. The next one keeps the reservation: it
// evicts no further pods, and does not give the room to another pod.
func TestRecovery(t *testing.T) {
	w := newWorld(t)
	w.addNodes(1)
	w.addClasses()
	short := []string{"--leader-elect-lease-duration", "2s", "--leader-elect-renew-deadline", "1500ms", "--leader-elect-retry-period", "200ms"}
	first := w.scheduler(short...)
	slow := func(p *corev1.Pod) { p.Finalizers = []string{finalizer} }
	for i := range 4 {
		w.create(pod(fmt.Sprintf("victim-%d", i), 1, preemptible, withPriority("low"), slow), pod(fmt.Sprintf("kept-%d", i), 1))
	}
	w.eventually(func() string { return w.allBound("") })
	// The rival is older, so that it would get the room if the reservation were not known.
	w.create(pod("rival", 4, withPriority("high"), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: finalizer}} }))
	time.Sleep(1100 * time.Millisecond) // times of creation are in seconds
	w.create(pod("important", 4, withPriority("high")))
	w.eventually(func() string {
		if n := len(w.evicted()); n != 4 {
			return fmt.Sprintf("%d pods are evicted, want 4", n)
		}
		if p := w.pods()["important"]; p.Status.NominatedNodeName == "" || p.Annotations["berth.dev/reservation"] == "" {
			return "pod important is not nominated: " + conditionText(p)
		}
		return ""
	})
	t.Log(w.pods()["important"].Annotations["berth.dev/reservation"])
	first.kill()
	w.patch("rival", `{"spec":{"schedulingGates":null}}`)
	w.scheduler(short...)
	w.eventually(func() string {
		if text := conditionText(w.pods()["rival"]); !strings.HasPrefix(text, "False Unschedulable") {
			return "pod rival: " + text
		}
		return ""
	})
	evicted := w.evicted()
	if len(evicted) != 4 {
		t.Errorf("%v are evicted, want 4 pods", evicted)
	}
	for _, name := range evicted {
		w.patch(name, `{"metadata":{"finalizers":null}}`)
	}
	w.eventually(func() string { return w.allBound("important") })
	if p := w.pods()["rival"]; p.Spec.NodeName != "" {
		t.Errorf("pod rival is on %s", p.Spec.NodeName)
	}
	if more := w.evicted(); len(more) > 0 {
		t.Errorf("%v are evicted as well", more)
	}
	w.checkRoom()
}

// patch changes a pod.
func (w *world) patch(name, patch string) {
	w.Helper()
	if _, err := w.client.CoreV1().Pods(namespace).Patch(w.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

// evicted returns the names of the pods that are being deleted.
func (w *world) evicted() []string {
	w.Helper()
	var out []string
	for name, p := range w.pods() {
		if p.DeletionTimestamp != nil {
			out = append(out, name)
		}
	}
	return out
}
