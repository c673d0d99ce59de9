package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bindByHand binds the pod to the node with a device, as another leader does.
func (w *world) bindByHand(name, node, device string) {
	w.Helper()
	b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if device != "" {
		b.Annotations = map[string]string{"berth.dev/devices": fmt.Sprintf(`[{"device":%q,"milli":1000}]`, device)}
	}
	if err := w.client.CoreV1().Pods(namespace).Bind(w.ctx, b, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// hasEvent returns "" if there is an event about the pod with the reason and a note that contains
// the text.
func (w *world) hasEvent(pod, reason, text string) string {
	list, err := w.client.EventsV1().Events(namespace).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, e := range list.Items {
		if e.Regarding.Name == pod && e.Reason == reason && strings.Contains(e.Note, text) {
			return ""
		}
	}
	return fmt.Sprintf("pod %s has no event %s with %q", pod, reason, text)
}

// TestDoubleBooking binds two pods to one device, as two leaders may do. The scheduler evicts the younger one, and none if
// evictions are switched off.
func TestDoubleBooking(t *testing.T) {
	for _, evictions := range []bool{true, false} {
		t.Run(fmt.Sprintf("evictions=%t", evictions), func(t *testing.T) {
			w := newWorld(t)
			w.addNodes(2)
			w.scheduler("--devices-enforced", fmt.Sprintf("--evictions=%t", evictions))
			w.create(pod("first", 1))
			w.eventually(func() string { return w.allBound("first") })
			first := w.pods()["first"]
			device := holdings(w, first)[0]
			time.Sleep(1100 * time.Millisecond) // times of bindings are in seconds
			w.create(pod("second", 1, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"no": "node"} }))
			w.bindByHand("second", first.Spec.NodeName, device)
			w.eventually(func() string { return w.hasEvent("first", "DeviceBookedTwice", device) })
			w.eventually(func() string { return w.hasEvent("second", "DeviceBookedTwice", device) })
			if evictions {
				w.eventually(func() string { return w.hasEvent("second", "Preempted", "(DeviceBookedTwice)") })
				w.eventually(func() string {
					if p := w.pods()["second"]; p != nil && p.DeletionTimestamp == nil {
						return "pod second is not evicted"
					}
					return ""
				})
			}
			time.Sleep(time.Second) // a further session would evict others
			pods := w.pods()
			if p := pods["first"]; p == nil || p.DeletionTimestamp != nil {
				t.Error("pod first is evicted, which is older")
			}
			if p := pods["second"]; !evictions && (p == nil || p.DeletionTimestamp != nil) {
				t.Error("pod second is evicted, although evictions are switched off")
			}
		})
	}
}
