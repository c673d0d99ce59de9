package feed

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
)

const dynamicObjects = `apiVersion: v1
kind: Node
metadata: {name: n0}
status: {allocatable: {cpu: 8, memory: 32Gi, pods: 110}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: mig}
spec: {selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].type == 'mig'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: nic}
spec: {selectors: [{cel: {expression: "device.driver == 'nic.example.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: any}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n0}
spec:
  driver: gpu.nvidia.com
  nodeName: n0
  pool: {name: n0, generation: 2, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {type: {string: gpu}, productName: {string: NVIDIA L4}, resource.kubernetes.io/numaNode: {int: 1}, resource.kubernetes.io/pcieRoot: {string: "pci0000:40"}}, capacity: {memory: {value: 24Gi}}}
  - {name: gpu-1, attributes: {type: {string: gpu}, productName: {string: NVIDIA H100}}, capacity: {memory: {value: 80Gi}}, taints: [{key: broken, effect: NoSchedule}]}
  - {name: gpu-10, attributes: {type: {string: gpu}, productName: {string: NVIDIA H100}}, capacity: {memory: {value: 80Gi}}}
  - {name: mig-0, attributes: {type: {string: mig}, productName: {string: NVIDIA H100}, profile: {string: 1g.10gb}, parentUUID: {string: GPU-3}}, capacity: {memory: {value: 10Gi}}}
  - {name: gpu-4, attributes: {type: {string: gpu}, productName: {string: NVIDIA A100}}, capacity: {memory: {value: 40Gi}}, consumesCounters: [{counterSet: four, counters: {memory: {value: 40Gi}}}]}
  - {name: gpu-4-mig-0, attributes: {type: {string: mig}, productName: {string: NVIDIA A100}, profile: {string: 3g.20gb}, parentUUID: {string: GPU-4}}, capacity: {memory: {value: 20Gi}}, consumesCounters: [{counterSet: four, counters: {memory: {value: 20Gi}}}]}
  - {name: gpu-4-mig-4, attributes: {type: {string: mig}, productName: {string: NVIDIA A100}, profile: {string: 3g.20gb}, parentUUID: {string: GPU-4}}, capacity: {memory: {value: 20Gi}}, consumesCounters: [{counterSet: four, counters: {memory: {value: 20Gi}}}]}
  - {name: vfio-0, attributes: {type: {string: vfio}, productName: {string: NVIDIA L4}}}
  - {name: many, allowMultipleAllocations: true, attributes: {type: {string: gpu}, productName: {string: NVIDIA L4}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: old}
spec: {driver: gpu.nvidia.com, nodeName: n0, pool: {name: n0, generation: 1, resourceSliceCount: 1}, devices: [{name: gone, attributes: {type: {string: gpu}}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: nic}
spec: {driver: nic.example.com, nodeName: n0, pool: {name: n0, generation: 1, resourceSliceCount: 1}, devices: [{name: nic-0}]}`

// TestDevicesOfSlices reads the devices of a node from slices.
func TestDevicesOfSlices(t *testing.T) {
	x := newFixture(t)
	x.putAll(dynamicObjects)
	var got []string
	for _, d := range x.state.Node("n0").Devices {
		got = append(got, fmt.Sprintf("%s %s %s %s %dGi numa %d pcie %q lost %v", strings.TrimPrefix(d.UUID, "gpu.nvidia.com/n0/"), d.Product, d.Resource, d.Profile, d.Memory>>30, d.NUMA, d.PCIe, d.Lost))
	}
	want := `gpu-0 NVIDIA-L4 nvidia.com/gpu  24Gi numa 1 pcie "pci0000:40" lost false
gpu-1 NVIDIA-H100 nvidia.com/gpu  80Gi numa -1 pcie "" lost true
gpu-4 NVIDIA-A100 nvidia.com/gpu  40Gi numa -1 pcie "" lost false
gpu-10 NVIDIA-H100 nvidia.com/gpu  80Gi numa -1 pcie "" lost false
mig-0 NVIDIA-H100 nvidia.com/mig-1g.10gb 1g.10gb 10Gi numa -1 pcie "" lost false`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("have\n%s\nwant\n%s", text, want)
	}
}

// TestDevicesCountOnce checks that a device that a device plugin and a slice offer counts once.
func TestDevicesCountOnce(t *testing.T) {
	x := newFixture(t)
	x.putAll(strings.Replace(dynamicObjects, "pods: 110}", `pods: 110, nvidia.com/gpu: 5, nvidia.com/mig-1g.10gb: 1}`, 1))
	count := map[string]int{}
	for _, d := range x.state.Node("n0").Devices {
		count[d.Resource]++
	}
	if count["nvidia.com/gpu"] != 5 || count["nvidia.com/mig-1g.10gb"] != 1 {
		t.Errorf("%v", count)
	}
}

// TestNeedOfClaims reads what a pod requests from its claim, pending and allocated.
func TestNeedOfClaims(t *testing.T) {
	for name, c := range map[string]struct{ requests, allocated, need, devices string }{
		"count":            {"[{name: a, exactly: {deviceClassName: gpu, count: 2}}]", "", "2 nvidia.com/gpu", ""},
		"allocated":        {"[{name: a, exactly: {deviceClassName: gpu, count: 2}}]", "gpu-0 gpu-10", "2 nvidia.com/gpu", "gpu-0:1000 gpu-10:1000"},
		"product":          {`[{name: a, exactly: {deviceClassName: gpu, count: 1, selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA L4'"}}]}}]`, "", "1 nvidia.com/gpu [NVIDIA-L4]", ""},
		"memory":           {`[{name: a, exactly: {deviceClassName: gpu, count: 1, selectors: [{cel: {expression: "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0"}}]}}]`, "", "1 nvidia.com/gpu [NVIDIA-A100 NVIDIA-H100]", ""},
		"two requests":     {"[{name: a, exactly: {deviceClassName: gpu, count: 1}}, {name: b, exactly: {deviceClassName: gpu, count: 2}}]", "", "3 nvidia.com/gpu", ""},
		"network card":     {"[{name: a, exactly: {deviceClassName: gpu, count: 1}}, {name: b, exactly: {deviceClassName: nic, count: 1}}]", "gpu-0", "1 nvidia.com/gpu", "gpu-0:1000"},
		"static slice":     {`[{name: a, exactly: {deviceClassName: mig, count: 1, selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"}}]}}]`, "mig-0", "1 nvidia.com/mig-1g.10gb 1g.10gb", "mig-0:1000"},
		"partition":        {`[{name: a, exactly: {deviceClassName: mig, count: 1, selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].profile == '3g.20gb'"}}]}}]`, "gpu-4-mig-4", "1 nvidia.com/gpu 428/1000", "gpu-4:428"},
		"two partitions":   {`[{name: a, exactly: {deviceClassName: mig, count: 2, selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].profile == '3g.20gb'"}}]}}]`, "gpu-4-mig-0 gpu-4-mig-4", "1 nvidia.com/gpu 856/1000", "gpu-4:856"},
		"sorts":            {"[{name: a, exactly: {deviceClassName: any, count: 1}}]", "", "0", ""},
		"sorts, allocated": {"[{name: a, exactly: {deviceClassName: any, count: 1}}]", "mig-0", "1 nvidia.com/mig-1g.10gb 1g.10gb", "mig-0:1000"},
		"all":              {"[{name: a, exactly: {deviceClassName: gpu, allocationMode: All}}]", "", "0 nvidia.com/gpu whole node", ""},
		"first available":  {"[{name: a, firstAvailable: [{name: x, deviceClassName: gpu, count: 1}, {name: y, deviceClassName: gpu, count: 2}]}]", "", "1 nvidia.com/gpu", ""},
		"second available": {"[{name: a, firstAvailable: [{name: x, deviceClassName: gpu, count: 1}, {name: y, deviceClassName: gpu, count: 2}]}]", "gpu-0 gpu-10", "2 nvidia.com/gpu", "gpu-0:1000 gpu-10:1000"},
		"other sorts":      {"[{name: a, firstAvailable: [{name: x, deviceClassName: gpu, count: 1}, {name: y, deviceClassName: mig, count: 1}]}]", "", "0", ""},
		"nothing matches":  {`[{name: a, exactly: {deviceClassName: gpu, count: 1, selectors: [{cel: {expression: "false"}}]}}]`, "", "0", ""},
		"no class":         {"[{name: a, exactly: {deviceClassName: none, count: 1}}]", "", "0", ""},
		"bad expression":   {`[{name: a, exactly: {deviceClassName: gpu, count: 1, selectors: [{cel: {expression: "device.("}}]}}]`, "", "0", ""},
		"admin":            {"[{name: a, exactly: {deviceClassName: gpu, count: 1, adminAccess: true}}]", "", "0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			status, node := "", ""
			for _, d := range strings.Fields(c.allocated) {
				status += fmt.Sprintf("{request: a, driver: gpu.nvidia.com, pool: n0, device: %s},", d)
			}
			if status != "" {
				status, node = "\nstatus: {allocation: {devices: {results: ["+status+"]}}, reservedFor: [{resource: pods, name: p, uid: u}]}", ", nodeName: n0"
			}
			x.putAll(dynamicObjects + "\n---\n" + `apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ns, uid: u}
spec: {schedulerName: berth, resourceClaims: [{name: gpu, resourceClaimName: c}], containers: [{name: main}]` + node + `}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: ns}
spec: {devices: {requests: ` + c.requests + "}}" + status)
			task := x.state.Job("pod/ns/p").Tasks()[0]
			if got := needText(&task.Shape.Need); got != c.need {
				t.Errorf("need %s, want %s", got, c.need)
			}
			var held []string
			for _, claim := range task.Claims {
				held = append(held, fmt.Sprintf("%s:%d", strings.TrimPrefix(task.Node.Devices[claim.Device].UUID, "gpu.nvidia.com/n0/"), claim.Milli))
			}
			if got := strings.Join(held, " "); got != c.devices {
				t.Errorf("holds %s, want %s", got, c.devices)
			}
		})
	}
}

func needText(n *cluster.Need) string {
	out := fmt.Sprint(n.Devices)
	for _, s := range []string{n.Resource, n.Partition} {
		if s != "" {
			out += " " + s
		}
	}
	if n.Share > 0 {
		out += fmt.Sprintf(" %d/1000", n.Share)
	}
	if n.Products != nil {
		out += fmt.Sprint(" ", n.Products)
	}
	if n.WholeNode {
		out += " whole node"
	}
	return out
}

// TestSharedClaim checks that the devices of a claim count for one pod only: for the oldest, or
// for one that the claim is reserved for.
func TestSharedClaim(t *testing.T) {
	x := newFixture(t)
	x.putAll(dynamicObjects)
	const text = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: ns, uid: %[1]s, resourceVersion: "%[2]d", creationTimestamp: "2026-11-17T10:00:0%[3]dZ"}
spec: {schedulerName: berth, resourceClaims: [{name: gpu, resourceClaimName: c}], containers: [{name: main}]}`
	const claim = `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: ns, resourceVersion: "%d"}
spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 1}}]}}
%s`
	check := func(want string) {
		t.Helper()
		got := ""
		for _, name := range []string{"a", "b"} {
			if j := x.state.Job("pod/ns/" + name); j != nil {
				got += fmt.Sprintf("%s:%d ", name, j.Tasks()[0].Shape.Need.Devices)
			}
		}
		if got != want {
			t.Errorf("devices %s, want %s", got, want)
		}
	}
	x.putAll(fmt.Sprintf(text, "b", 1, 2))
	check("b:0 ")
	x.putAll(fmt.Sprintf(claim, 2, ""))
	check("b:1 ")
	x.putAll(fmt.Sprintf(text, "a", 3, 1))
	check("a:1 b:0 ")
	x.putAll(fmt.Sprintf(claim, 4, "status: {allocation: {devices: {results: [{request: a, driver: gpu.nvidia.com, pool: n0, device: gpu-0}]}}, reservedFor: [{resource: pods, name: b, uid: b}]}"))
	check("a:0 b:1 ")
	x.remove(decode(t, fmt.Sprintf(text, "b", 1, 2))[0])
	check("a:1 ")
}

// TestSeveralKinds refuses a pod that claims devices of several kinds, until it has a node.
func TestSeveralKinds(t *testing.T) {
	x := newFixture(t)
	x.putAll(dynamicObjects + `
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: whole, namespace: ns}
spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 1}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: slice, namespace: ns}
spec: {devices: {requests: [{name: a, exactly: {deviceClassName: mig, count: 1, selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"}}]}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ns, uid: u, resourceVersion: "5"}
spec: {schedulerName: berth, resourceClaims: [{name: a, resourceClaimName: whole}, {name: b, resourceClaimName: slice}], containers: [{name: main}]}`)
	if x.state.Job("pod/ns/p") != nil {
		t.Error("the pod is a task")
	}
	if len(x.notes) != 1 || !strings.Contains(x.notes[0].Message, "the pod claims MIG slices 1g.10gb and nvidia.com/gpu; claim one kind of device, or split the pod") {
		t.Errorf("%+v", x.notes)
	}
}
