package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const queues = `apiVersion: berth.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec:
  quota: {nvidia.com/gpu: 8}
---
apiVersion: berth.dev/v1alpha1
kind: Queue
metadata: {name: product}
spec:
  quota: {nvidia.com/gpu: 8}
`

// TestQueues lets a queue borrow the quota of another, and reclaims it for the owner.
func TestQueues(t *testing.T) {
	w := newWorld(t)
	w.addNodes(2)
	w.install("../config/crd/queues.berth.dev.yaml")
	w.apply(queues)
	w.scheduler()
	for i := range 16 {
		w.create(pod(fmt.Sprintf("borrower-%02d", i), 1, preemptible, inQueue("research")))
	}
	w.eventually(func() string { return w.allBound("borrower-") })
	w.createGang("owner", 2, 2, 3, inQueue("product"))
	w.eventually(func() string { return w.allBound("owner-") })
	borrowers := 0
	for name := range w.pods() {
		if strings.HasPrefix(name, "borrower-") {
			borrowers++
		}
	}
	if borrowers != 10 {
		t.Errorf("%d borrowers run, want 10", borrowers)
	}
	w.checkRoom()
	client, err := dynamic.NewForConfig(w.cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "berth.dev", Version: "v1alpha1", Resource: "queues"}
	w.eventually(func() string {
		for name, want := range map[string]string{"research": "10", "product": "6"} {
			q, err := client.Resource(resource).Get(w.ctx, name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			status, _ := q.Object["status"].(map[string]any)
			allocated, _ := status["allocated"].(map[string]any)
			if fmt.Sprint(allocated[gpu]) != want {
				return fmt.Sprintf("queue %s: status %v, want %s GPUs allocated", name, status, want)
			}
		}
		return ""
	})
	w.create(pod("lost", 1, inQueue("nowhere")))
	w.eventually(func() string {
		if text := conditionText(w.pods()["lost"]); !strings.HasPrefix(text, "False Unschedulable: queue nowhere does not exist") {
			return "pod lost: " + text
		}
		return ""
	})
	t.Log("\n" + w.kubectl("", "get", "queues"))
}
