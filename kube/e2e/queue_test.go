package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/berth-project/berth/kube/internal/testcluster"
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

// TestQueueConflict changes a queue while its status is written. The scheduler reads the queue again,
// and writes the status.
func TestQueueConflict(t *testing.T) {
	w := newWorld(t)
	w.addNodes(1)
	w.install("../config/crd/queues.berth.dev.yaml")
	w.apply(queues)
	p := w.newProxy(*faultSeed)
	w.newInProcess(p.config(), always)
	var once sync.Once
	p.before(func(r *http.Request) int {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/queues/research/status") {
			once.Do(func() {
				if out, err := w.TryKubectl("", "annotate", "queue", "research", "example.com/changed=true"); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
		return 0
	})
	w.create(pod("a", 1, inQueue("research")))
	w.eventually(func() string {
		if got := w.kubectl("", "get", "queue", "research", "-o", `jsonpath={.status.allocated.nvidia\.com/gpu}`); got != "1" {
			return fmt.Sprintf("queue research has %q GPUs, want 1", got)
		}
		return ""
	})
	if w.RequestsOf(schedulerUser)[testcluster.Permission{Verb: "get", Group: "berth.dev", Resource: "queues"}] == 0 {
		t.Error("the scheduler has not read the queue again")
	}
}
