package e2e

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const draQueues = `apiVersion: berth.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec:
  quota: {nvidia.com/gpu: 2}
---
apiVersion: berth.dev/v1alpha1
kind: Queue
metadata: {name: product}
spec:
  quota: {nvidia.com/gpu: 2}
---
apiVersion: berth.dev/v1alpha1
kind: Queue
metadata: {name: small}
spec:
  quota: {nvidia.com/gpu: 0}
  limits: {nvidia.com/gpu: 1}
`

// TestDRAQueues counts claimed GPUs for queues: a limit holds, and a queue that borrows is
// reclaimed from.
func TestDRAQueues(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.install("../config/crd/queues.berth.dev.yaml")
	w.apply(draQueues)
	w.apply(draClasses)
	w.draNode("gpus", "NVIDIA H100 80GB HBM3", "80Gi", 4)
	scheduler := w.scheduler()
	w.watchClaims()

	w.create(pod("small-0", 0, claiming("one"), inQueue("small"), preemptible))
	w.eventually(func() string { return w.allBound("small-0") })
	w.create(pod("small-1", 0, claiming("one"), inQueue("small"), preemptible))
	w.waitCondition("small-1", "False Unschedulable: QueueLimitReached")
	w.deletePods("small-1")
	w.deletePods("small-0")

	for i := range 4 {
		w.create(pod(fmt.Sprintf("borrower-%d", i), 0, claiming("one"), preemptible, inQueue("research")))
	}
	w.eventually(func() string { return w.allBound("borrower-") })
	w.checkDevices()
	w.create(pod("owner-0", 0, claiming("one"), inQueue("product"), inGang("owner", 2)), pod("owner-1", 0, claiming("one"), inQueue("product"), inGang("owner", 2)))
	w.eventually(func() string { return w.allBound("owner-") })
	left := 0
	for name := range w.pods() {
		if strings.HasPrefix(name, "borrower-") {
			left++
		}
	}
	if left != 2 {
		t.Errorf("%d borrowers run, want 2", left)
	}
	w.checkDevices()
	w.checkDone(scheduler)
	t.Log("\n" + w.berth("queues"))
}

// watchClaims fails the test if, at any moment, a device is allocated to two claims.
func (w *world) watchClaims() {
	w.Helper()
	events, err := w.client.ResourceV1().ResourceClaims(namespace).Watch(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(events.Stop)
	go func() {
		held := map[string]string{} // by device: the claim
		for e := range events.ResultChan() {
			c, isClaim := e.Object.(*resourcev1.ResourceClaim)
			if !isClaim {
				continue
			}
			maps.DeleteFunc(held, func(_, claim string) bool { return claim == c.Name })
			if e.Type == watch.Deleted || c.Status.Allocation == nil {
				continue
			}
			for _, d := range c.Status.Allocation.Devices.Results {
				if other := held[d.Pool+"/"+d.Device]; other != "" {
					w.Errorf("device %s/%s is allocated to %s and %s", d.Pool, d.Device, other, c.Name)
				}
				held[d.Pool+"/"+d.Device] = c.Name
			}
		}
	}()
}

// deletePods deletes the pods, and waits until they are gone.
func (w *world) deletePods(names ...string) {
	w.Helper()
	w.kubectl("", append([]string{"delete", "pod", "--grace-period=0", "--force"}, names...)...)
	w.eventually(func() string {
		for _, name := range names {
			if w.pods()[name] != nil {
				return "pod " + name + " exists"
			}
		}
		return ""
	})
}

// TestDRAExtendedResource requests nvidia.com/gpu without a claim on a node that has slices only:
// the scheduler makes the claim. Without a class that has the name, the node offers nothing.
func TestDRAExtendedResource(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.draNode("gpus", "NVIDIA H100 80GB HBM3", "80Gi", 2)
	scheduler := w.scheduler()
	w.create(pod("a", 1))
	w.waitCondition("a", "False Unschedulable: 0/1 nodes: 1 ResourceNotOffered")
	w.apply(draClasses)
	w.eventually(func() string { return w.allBound("a") })
	w.create(pod("b", 1), pod("c", 1))
	w.eventually(func() string {
		bound := 0
		for _, p := range w.pods() {
			if p.Spec.NodeName != "" {
				bound++
			}
		}
		if bound != 2 {
			return fmt.Sprintf("%d pods are bound", bound)
		}
		return ""
	})
	w.checkDevices()
	for name, p := range w.pods() {
		if p.Spec.NodeName != "" && p.Status.ExtendedResourceClaimStatus == nil {
			t.Errorf("pod %s has no claim", name)
		}
	}
	w.checkDone(scheduler)
}

// TestDRASharedClaim lets two pods use one claim, which counts once.
func TestDRASharedClaim(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.apply(draClasses)
	w.apply(`apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
`)
	w.draNode("gpus", "NVIDIA H100 80GB HBM3", "80Gi", 1)
	w.scheduler()
	w.create(pod("a", 0, using("shared")), pod("b", 0, using("shared")))
	w.eventually(func() string { return w.allBound("") })
	if text := w.berth("top"); !strings.Contains(text, "0 free") {
		t.Errorf("the GPU is not held:\n%s", text)
	}
}

const twoClaims = `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: first, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: second, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
`

// using gives the pod a claim that exists.
func using(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	}
}

// TestDRARelease lets a pod leave while the controller that deallocates claims does not run, and
// creates another that needs the device. The device is not allocated again before it is
// deallocated, and no further pod is evicted.
func TestDRARelease(t *testing.T) {
	for name, preempted := range map[string]bool{"preempted": true, "deleted": false} {
		t.Run(name, func(t *testing.T) { testRelease(t, preempted) })
	}
}

func testRelease(t *testing.T, preempted bool) {
	w := newWorld(t, controlplane.ControllerManager)
	w.addClasses()
	w.apply(draClasses)
	w.apply(twoClaims)
	w.draNode("gpus", "NVIDIA H100 80GB HBM3", "80Gi", 2)
	scheduler := w.scheduler()
	w.watchClaims()
	first, other := pod("first", 0, using("first"), withPriority("low")), pod("other", 0, claiming("one"), withPriority("low"))
	if preempted {
		preemptible(first)
	} else {
		preemptible(other)
	}
	w.create(first, other)
	w.eventually(func() string { return w.allBound("") })
	controllers, err := os.FindProcess(w.cp.Pid(controlplane.ControllerManager))
	if err != nil {
		t.Fatal(err)
	}
	if err := controllers.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = controllers.Signal(syscall.SIGCONT) })
	if !preempted {
		w.deletePods("first")
	}
	w.create(pod("second", 0, using("second"), withPriority("high")))
	w.eventually(func() string {
		if w.pods()["first"] != nil {
			return "pod first is not evicted"
		}
		return ""
	})
	time.Sleep(2 * time.Second) // in which nothing may happen
	if node := w.pods()["second"].Spec.NodeName; node != "" {
		t.Errorf("pod second is bound to %s, and its device is allocated to another claim", node)
	}
	if err := controllers.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() string { return w.allBound("second") })
	if w.pods()["other"] == nil {
		t.Error("pod other was evicted")
	}
	w.checkDevices()
	w.checkDone(scheduler)
}
