package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/feed"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// holdings returns the devices that the pod holds.
func holdings(w *world, p *corev1.Pod) []string {
	text := p.Annotations[feed.AnnotationDevices]
	if text == "" {
		return nil
	}
	var list []cluster.Holding
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		w.Errorf("pod %s: %v", p.Name, err)
	}
	var out []string
	for _, h := range list {
		out = append(out, h.Device)
	}
	return out
}

// TestPods places pods, says why one is not placed, and places it when a node is added.
func TestPods(t *testing.T) {
	w := newWorld(t)
	w.addNodes(4)
	w.scheduler()
	for i := range 24 {
		w.create(pod(fmt.Sprintf("one-%02d", i), 1))
	}
	w.create(pod("none", 0))
	w.eventually(func() string { return w.allBound("") })
	w.checkRoom()
	for name, p := range w.pods() {
		if want := p.Spec.Containers[0].Resources.Limits[gpu]; int(want.Value()) != len(holdings(w, p)) {
			t.Errorf("pod %s has %s GPUs and holds %v", name, want.String(), holdings(w, p))
		}
	}
	w.create(pod("large", 8), pod("impossible", 9))
	w.eventually(func() string {
		for name, text := range map[string]string{"large": "bound", "impossible": "0/4 nodes"} {
			p := w.pods()[name]
			if text == "bound" {
				if p.Spec.NodeName == "" {
					return "pod large is not bound: " + conditionText(p)
				}
			} else if !strings.HasPrefix(conditionText(p), "False Unschedulable: ") || !strings.Contains(conditionText(p), text) {
				return "pod impossible: " + conditionText(p)
			}
		}
		return ""
	})
	t.Log(conditionText(w.pods()["impossible"]))
	w.eventually(func() string {
		list, err := w.client.CoreV1().Events(namespace).List(w.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=impossible"})
		if err != nil || len(list.Items) == 0 {
			return fmt.Sprintf("no event about the pod impossible: %v", err)
		}
		return ""
	})
}
