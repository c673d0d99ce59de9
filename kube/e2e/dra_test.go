package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/command"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/plugins/standard"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// draClasses are classes as the driver of NVIDIA installs them, and templates of claims.
const draClasses = `apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  extendedResourceName: nvidia.com/gpu
  selectors:
  - cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: mig.nvidia.com}
spec:
  selectors:
  - cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: mig, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: mig.nvidia.com, selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'"}}]}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: l4, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA L4'"}}]}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: large, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('1Ti')) >= 0"}}]}}]}}}
`

// draNode adds a node without a device plugin, and a slice of its GPUs.
func (w *world) draNode(name, product, memory string, gpus int) {
	w.Helper()
	if err := w.cp.AddNodes(w.ctx, controlplane.Node{Name: name}); err != nil {
		w.Fatal(err)
	}
	text := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }
	w.createSlices(name, 1, func(s *resourcev1.ResourceSlice) {
		for i := range gpus {
			s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
				Name:       fmt.Sprint("gpu-", i),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": text("gpu"), "productName": text(product), "uuid": text(fmt.Sprintf("GPU-%s-%d", name, i))},
				Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}},
			})
		}
	})
}

// partitionedNode adds a node with one GPU that is partitioned when partitions are allocated: the
// whole GPU, or two of 3g.40gb.
func (w *world) partitionedNode(name string) {
	w.Helper()
	if err := w.cp.AddNodes(w.ctx, controlplane.Node{Name: name}); err != nil {
		w.Fatal(err)
	}
	text := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }
	counter := func(n string) map[string]resourcev1.Counter {
		return map[string]resourcev1.Counter{"slices": {Value: resource.MustParse(n)}}
	}
	uses := func(n string) []resourcev1.DeviceCounterConsumption {
		return []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-0", Counters: counter(n)}}
	}
	w.createSlices(name, 2, func(s *resourcev1.ResourceSlice) {
		s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "gpu-0", Counters: counter("8")}}
	}, func(s *resourcev1.ResourceSlice) {
		s.Spec.Devices = []resourcev1.Device{{
			Name: "gpu-0", ConsumesCounters: uses("8"),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": text("gpu"), "productName": text("NVIDIA H100 80GB HBM3")},
			Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		}}
		for _, at := range []string{"0", "4"} {
			s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
				Name: "gpu-0-mig-3g40gb-" + at, ConsumesCounters: uses("4"),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": text("mig"), "profile": text("3g.40gb"), "productName": text("NVIDIA H100 80GB HBM3")},
				Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("40Gi")}},
			})
		}
	})
}

func (w *world) createSlices(node string, count int64, fill ...func(*resourcev1.ResourceSlice)) {
	w.Helper()
	for i, f := range fill {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", node, i)}}
		s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: count}}
		f(s)
		if _, err := w.client.ResourceV1().ResourceSlices().Create(w.ctx, s, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

// claiming gives the pod a claim that is made from the template.
func claiming(template string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	}
}

// checkDevices fails the test if a device is allocated twice, or if the devices that the State
// booked for a pod are not those that are allocated. It returns the devices of each pod.
func (w *world) checkDevices() map[string][]string {
	w.Helper()
	list, err := w.client.ResourceV1().ResourceClaims(namespace).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	devices, pods := map[string]string{}, map[string][]string{}
	for _, c := range list.Items {
		if c.Status.Allocation == nil {
			continue
		}
		for _, d := range c.Status.Allocation.Devices.Results {
			name := d.Driver + "/" + d.Pool + "/" + d.Device
			if other := devices[name]; other != "" {
				w.Errorf("device %s is allocated to %s and %s", name, other, c.Name)
			}
			devices[name] = c.Name
			for _, r := range c.Status.ReservedFor {
				pods[r.Name] = append(pods[r.Name], name)
			}
		}
	}
	for name, p := range w.pods() {
		slices.Sort(pods[name])
		if p.Spec.NodeName != "" && len(pods[name]) == 0 {
			w.Errorf("pod %s is bound, and no device is allocated to it", name)
		}
		if booked := holdings(w, p); !strings.Contains(fmt.Sprint(pods[name]), "-mig-") && fmt.Sprint(booked) != fmt.Sprint(pods[name]) {
			w.Errorf("pod %s: %v is booked, %v allocated", name, booked, pods[name])
		}
	}
	return pods
}

// berth runs kubectl berth.
func (w *world) berth(args ...string) string {
	w.Helper()
	var out, errs bytes.Buffer
	if code := command.Kubectl(standard.Registry(), append([]string{"--kubeconfig", w.cp.Kubeconfig()}, args...), strings.NewReader(""), &out, &errs); code != 0 {
		w.Fatalf("kubectl berth %v: exit code %d: %s", args, code, errs.String())
	}
	return out.String()
}

func (w *world) waitCondition(name, prefix string) {
	w.Helper()
	w.eventually(func() string {
		if text := conditionText(w.pods()[name]); !strings.HasPrefix(text, prefix) {
			return "pod " + name + ": " + text
		}
		return ""
	})
	w.Log(name + ": " + conditionText(w.pods()[name]))
}

// TestDRADevices claims whole GPUs, partitions, and GPUs of a product, by a gang and by single
// pods, by claims and by a plain request for nvidia.com/gpu.
func TestDRADevices(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager)
	w.apply(draClasses)
	w.draNode("h100", "NVIDIA H100 80GB HBM3", "80Gi", 4)
	w.draNode("l4", "NVIDIA L4", "24Gi", 2)
	w.partitionedNode("parts")
	scheduler := w.scheduler()

	w.create(pod("product", 0, claiming("l4")))
	w.eventually(func() string { return w.allBound("product") })
	if node := w.pods()["product"].Spec.NodeName; node != "l4" {
		t.Errorf("pod product is on %s", node)
	}
	w.create(pod("gang-0", 0, claiming("two"), inGang("gang", 2)), pod("gang-1", 0, claiming("two"), inGang("gang", 2)))
	w.eventually(func() string { return w.allBound("gang-") })
	for _, name := range []string{"gang-0", "gang-1"} {
		t.Logf("%s is on %s with %v", name, w.pods()[name].Spec.NodeName, w.checkDevices()[name])
	}
	w.create(pod("mig-0", 0, claiming("mig")), pod("mig-1", 0, claiming("mig")))
	w.eventually(func() string { return w.allBound("mig-") })
	for _, name := range []string{"mig-0", "mig-1"} {
		if node := w.pods()[name].Spec.NodeName; node != "parts" {
			t.Errorf("pod %s is on %s", name, node)
		}
	}
	w.create(pod("mig-2", 0, claiming("mig")))
	w.waitCondition("mig-2", "False Unschedulable: 0/3 nodes")
	help := w.berth("why", "mig-2")
	for _, want := range []string{"✓ with one more node of NVIDIA-H100-80GB-HBM3 × 1", "✓ with pod/default/mig-0 (Standard, not preemptible, 0.428 devices on parts)"} {
		if !strings.Contains(help, want) {
			t.Errorf("why does not say %q:\n%s", want, help)
		}
	}

	w.create(pod("impossible", 0, claiming("large")))
	w.waitCondition("impossible", "False Unschedulable: 0/3 nodes: 3 DeviceNotAllocatable")
	why, top := w.berth("why", "impossible"), w.berth("top")
	t.Logf("\n%s\n%s", why, top)
	for _, want := range []string{"cannot allocate all claims", "The selectors of request gpu of ResourceClaim impossible-gpu-"} {
		if !strings.Contains(why, want) {
			t.Errorf("why does not say %q", want)
		}
	}
	if strings.Contains(top, "lost") || !strings.Contains(top, "4.86 of 7") && !strings.Contains(top, "5.86 of 7") {
		t.Error("top does not show the devices")
	}
	w.checkDevices()
	w.checkDone(scheduler)
}
