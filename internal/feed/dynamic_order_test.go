package feed

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claimNames are the claims that pods use in tests. Several pods may use one claim.
var claimNames = []string{"c0", "c1"}

// podClaims draws the claims of a pod.
func (g *generator) podClaims() []corev1.PodResourceClaim {
	if g.chance("claims", 60) {
		return nil
	}
	name := g.pick("claim", claimNames...)
	return []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
}

// dynamic draws slices, classes and claims. Node n0 has the GPUs 0 and 1, and the partition "part"
// of GPU 2.
func (g *generator) dynamic() []history {
	out := []history{
		g.history(func(life, _ int) metav1.Object { return g.slice(g.meta("", "slice", "slice", life)) }),
		g.history(func(life, _ int) metav1.Object {
			o := &resourcev1.DeviceClass{ObjectMeta: g.meta("", "gpu", "class", life)}
			o.Spec.Selectors = selector(g.pick("class", "device.driver == 'gpu.nvidia.com'", "device.attributes['gpu.nvidia.com'].type == 'gpu'"))
			return o
		}),
	}
	for i, name := range claimNames {
		out = append(out, g.history(func(life, _ int) metav1.Object { return g.claim(g.meta("ns", name, "claim", life), i) }))
	}
	return out
}

func selector(expression string) []resourcev1.DeviceSelector {
	return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
}

func (g *generator) slice(m metav1.ObjectMeta) *resourcev1.ResourceSlice {
	node, text := "n0", func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }
	o := &resourcev1.ResourceSlice{ObjectMeta: m}
	o.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: "n0", Generation: int64(g.number("generation", 1, 2)), ResourceSliceCount: 1}}
	memory := map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("24Gi")}}
	for i := range 3 {
		d := resourcev1.Device{Name: fmt.Sprint("gpu-", i), Capacity: memory, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": text("gpu"), "productName": text(g.pick("model", "NVIDIA L4", "NVIDIA H100")),
		}}
		if i == 2 {
			d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "set"}}
		} else if g.chance("tainted", 20) {
			d.Taints = []resourcev1.DeviceTaint{{Key: "example.com/broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
		}
		o.Spec.Devices = append(o.Spec.Devices, d)
	}
	o.Spec.Devices = append(o.Spec.Devices, resourcev1.Device{
		Name: "part", ConsumesCounters: o.Spec.Devices[2].ConsumesCounters,
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("6Gi")}},
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": text("mig"), "profile": text("2g.6gb"), "productName": o.Spec.Devices[2].Attributes["productName"],
		},
	})
	return o
}

func (g *generator) claim(m metav1.ObjectMeta, number int) *resourcev1.ResourceClaim {
	o := &resourcev1.ResourceClaim{ObjectMeta: m}
	exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: g.pick("class", "gpu", "gpu", "none"), Count: 1}
	if g.chance("selector", 50) {
		exactly.Selectors = selector("device.attributes['gpu.nvidia.com'].productName == 'NVIDIA L4'")
	}
	o.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: exactly}}
	if g.chance("allocated", 50) {
		device := fmt.Sprint("gpu-", number)
		if g.chance("partition", 30) {
			device = "part"
		}
		o.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: "n0", Device: device}}}}
		pod := g.pick("for", "p0", "p1", "p2")
		o.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: types.UID("pod-" + pod + "-0")}}
	}
	return o
}
