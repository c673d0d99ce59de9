package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/internal/controlplane"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const deviceClass = `apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  selectors:
  - cel: {expression: "device.driver == 'gpu.example.com'"}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two-large, namespace: default}
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly:
          deviceClassName: gpu.example.com
          count: 2
          selectors:
          - cel: {expression: "device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0"}
`

const slice = `apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s}
spec:
  driver: gpu.example.com
  nodeName: %[1]s
  pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, capacity: {memory: {value: 80Gi}}}
  - {name: gpu-1, capacity: {memory: {value: 80Gi}}}
  - {name: gpu-2, capacity: {memory: {value: 80Gi}}}
  - {name: gpu-3, capacity: {memory: {value: 24Gi}}}
`

func withDevices(p *corev1.Pod) {
	template := "two-large"
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: &template}}
	p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpus"}}
}

// TestClaims allocates devices of ResourceClaims. Each of two nodes has three devices that are
// large enough, and each pod claims two of them: one pod fits each node.
func TestClaims(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.addNodes(2)
	w.apply(deviceClass)
	for _, node := range []string{"node-0000", "node-0001"} {
		w.apply(fmt.Sprintf(slice, node))
	}
	scheduler := w.scheduler()
	w.create(pod("a", 0, withDevices, inGang("pair", 2)), pod("b", 0, withDevices, inGang("pair", 2)))
	w.eventually(func() string { return w.allBound("") })
	if pods := w.pods(); pods["a"].Spec.NodeName == pods["b"].Spec.NodeName {
		t.Errorf("both pods are on %s", pods["a"].Spec.NodeName)
	}
	w.checkClaims()
	w.create(pod("c", 0, withDevices))
	w.eventually(func() string {
		if text := conditionText(w.pods()["c"]); !strings.HasPrefix(text, "False Unschedulable: 0/2 nodes: 2 DeviceNotAllocatable") {
			return "pod c: " + text
		}
		return ""
	})
	t.Log(conditionText(w.pods()["c"]))
	if err := w.client.CoreV1().Pods(namespace).Delete(w.ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() string { return w.allBound("c") })
	w.checkClaims()
	w.checkDone(scheduler)
}

// checkClaims fails the test if the claim of a bound pod is not allocated and reserved for it,
// or if a device is allocated twice.
func (w *world) checkClaims() {
	w.Helper()
	list, err := w.client.ResourceV1().ResourceClaims(namespace).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	devices, reserved := map[string]string{}, map[string]bool{}
	for _, c := range list.Items {
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.ReservedFor {
			reserved[r.Name] = true
		}
		for _, d := range c.Status.Allocation.Devices.Results {
			if d.Device == "gpu-3" {
				w.Errorf("claim %s has a device that is too small", c.Name)
			}
			if other := devices[d.Pool+"/"+d.Device]; other != "" {
				w.Errorf("device %s/%s is allocated to %s and %s", d.Pool, d.Device, other, c.Name)
			}
			devices[d.Pool+"/"+d.Device] = c.Name
		}
	}
	for name, p := range w.pods() {
		if p.Spec.NodeName != "" && !reserved[name] {
			w.Errorf("pod %s is bound, and its claim is not reserved for it", name)
		}
	}
}
