package cluster

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gfd returns the labels of GPU Feature Discovery for a node with whole devices.
func gfd(product, count, memory string, more ...string) map[string]string {
	m := map[string]string{LabelProduct: product, LabelCount: count, LabelMemory: memory}
	for i := 0; i+1 < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

func without(m map[string]string, key string) map[string]string {
	delete(m, key)
	return m
}

func TestDevicesFromLabels(t *testing.T) {
	const a100 = "NVIDIA-A100-SXM4-40GB"
	gpu := func(uuid, parent, product string, mib int64) Device {
		return Device{DeviceSpec: &DeviceSpec{Parent: parent, Product: product, Type: "cuda", Memory: Bytes(mib << 20), NUMA: -1, Replica: strings.Contains(uuid, "::")}, UUID: uuid}
	}
	slice := func(uuid, parent, profile string, mib int64) Device {
		d := gpu(uuid, parent, a100+"-MIG-"+profile, mib)
		d.OwnSpec()
		d.Profile, d.Resource = profile, PartitionResource+profile
		return d
	}
	linked := gpu("GPU-n-0", "", "NVIDIA-GB200", 188416)
	linked.Link = "7b2a.1"

	type result struct {
		Devices  []Device
		Resource string
		Sharing  Sharing
		Defect   *Defect
	}
	tests := map[string]struct {
		labels      map[string]string
		allocatable Resources
		want        result
	}{
		"no labels": {
			labels: map[string]string{"nvidia.com/gpu.present": "true"},
			want:   result{Resource: DefaultDeviceResource},
		},
		"whole devices": {
			labels:      gfd(a100, "2", "40960"),
			allocatable: Resources{{DefaultDeviceResource, 2}},
			want:        result{Devices: []Device{gpu("GPU-n-0", "", a100, 40960), gpu("GPU-n-1", "", a100, 40960)}, Resource: DefaultDeviceResource},
		},
		"allocatable caps": {
			labels:      gfd(a100, "8", "40960"),
			allocatable: Resources{{DefaultDeviceResource, 1}},
			want:        result{Devices: []Device{gpu("GPU-n-0", "", a100, 40960)}, Resource: DefaultDeviceResource},
		},
		"nothing is allocatable without a device plugin": {
			labels:      gfd(a100, "8", "40960"),
			allocatable: Resources{{CPU, 64000}},
			want:        result{Devices: []Device{}, Resource: DefaultDeviceResource},
		},
		"link": {
			labels: gfd("NVIDIA-GB200", "1", "188416", LabelClique, "7b2a.1"),
			want:   result{Devices: []Device{linked}, Resource: DefaultDeviceResource},
		},
		"replicas made by time-slicing share the memory": {
			labels:      gfd(a100+"-SHARED", "1", "40960", LabelReplicas, "2", LabelSharing, "time-slicing"),
			allocatable: Resources{{DefaultDeviceResource, 2}},
			want: result{
				Devices: []Device{
					gpu("GPU-n-0::0", "GPU-n-0", a100+"-SHARED", 40960), gpu("GPU-n-0::1", "GPU-n-0", a100+"-SHARED", 40960)},
				Resource: DefaultDeviceResource, Sharing: Sharing{"time-slicing", 2},
			},
		},
		"mps divides the memory, and the resource is renamed": {
			labels:      gfd(a100, "1", "40960", LabelReplicas, "4", LabelSharing, "mps"),
			allocatable: Resources{{SharedDeviceResource, 2}},
			want: result{
				Devices:  []Device{gpu("GPU-n-0::0", "GPU-n-0", a100, 10240), gpu("GPU-n-0::1", "GPU-n-0", a100, 10240)},
				Resource: SharedDeviceResource, Sharing: Sharing{"mps", 4},
			},
		},
		"shared devices without -SHARED are renamed": {
			labels: gfd(a100, "1", "40960", LabelReplicas, "2", LabelSharing, "time-slicing"),
			want: result{
				Devices:  []Device{gpu("GPU-n-0::0", "GPU-n-0", a100, 40960), gpu("GPU-n-0::1", "GPU-n-0", a100, 40960)},
				Resource: SharedDeviceResource, Sharing: Sharing{"time-slicing", 2},
			},
		},
		"MIG single: slices are requested by count": {
			labels:      gfd(a100+"-MIG-3g.20gb", "3", "19968", "nvidia.com/mig.strategy", "single"),
			allocatable: Resources{{DefaultDeviceResource, 3}},
			want: result{
				Devices: []Device{
					gpu("MIG-n-0-0", "GPU-n-0", a100+"-MIG-3g.20gb", 19968), gpu("MIG-n-0-1", "GPU-n-0", a100+"-MIG-3g.20gb", 19968),
					gpu("MIG-n-1-0", "GPU-n-1", a100+"-MIG-3g.20gb", 19968)},
				Resource: DefaultDeviceResource,
			},
		},
		"MIG single on a GPU with four compute slices": {
			labels: gfd("NVIDIA-A30-MIG-2g.12gb", "3", "12032"),
			want: result{
				Devices: []Device{
					gpu("MIG-n-0-0", "GPU-n-0", "NVIDIA-A30-MIG-2g.12gb", 12032), gpu("MIG-n-0-1", "GPU-n-0", "NVIDIA-A30-MIG-2g.12gb", 12032),
					gpu("MIG-n-1-0", "GPU-n-1", "NVIDIA-A30-MIG-2g.12gb", 12032)},
				Resource: DefaultDeviceResource,
			},
		},
		"MIG mixed: slices, and a GPU that is not partitioned": {
			labels: gfd(a100, "2", "40960", "nvidia.com/mig.strategy", "mixed",
				"nvidia.com/mig-1g.5gb.count", "2", "nvidia.com/mig-1g.5gb.memory", "4864", "nvidia.com/mig-1g.5gb.product", a100+"-MIG-1g.5gb",
				"nvidia.com/mig-3g.20gb.count", "1", "nvidia.com/mig-3g.20gb.memory", "19968", "nvidia.com/mig-3g.20gb.product", a100+"-MIG-3g.20gb"),
			allocatable: Resources{{DefaultDeviceResource, 1}, {"nvidia.com/mig-1g.5gb", 2}, {"nvidia.com/mig-3g.20gb", 1}},
			want: result{
				Devices: []Device{
					gpu("GPU-n-0", "", a100, 40960),
					slice("MIG-n-1-0", "GPU-n-1", "1g.5gb", 4864), slice("MIG-n-1-1", "GPU-n-1", "1g.5gb", 4864),
					slice("MIG-n-1-2", "GPU-n-1", "3g.20gb", 19968)},
				Resource: DefaultDeviceResource,
			},
		},
		"MIG mixed: allocatable caps slices": {
			labels:      gfd(a100, "1", "40960", "nvidia.com/mig-1g.5gb.count", "7", "nvidia.com/mig-1g.5gb.memory", "4864", "nvidia.com/mig-1g.5gb.product", a100+"-MIG-1g.5gb"),
			allocatable: Resources{{"nvidia.com/mig-1g.5gb", 1}},
			want:        result{Devices: []Device{slice("MIG-n-0-0", "GPU-n-0", "1g.5gb", 4864)}, Resource: DefaultDeviceResource},
		},
		"product missing":   {labels: without(gfd("x", "1", "1"), LabelProduct), want: bad(LabelProduct, "is missing")},
		"product empty":     {labels: gfd("", "1", "1"), want: bad(LabelProduct, "is empty")},
		"count missing":     {labels: without(gfd("x", "1", "1"), LabelCount), want: bad(LabelCount, "is missing")},
		"count garbage":     {labels: gfd("x", "eight", "1"), want: bad(LabelCount, `"eight" is not a whole number`)},
		"count negative":    {labels: gfd("x", "-8", "1"), want: bad(LabelCount, "-8 is not between 0 and 1024")},
		"count absurd":      {labels: gfd("x", "1025", "1"), want: bad(LabelCount, "1025 is not between 0 and 1024")},
		"count overflows":   {labels: gfd("x", "99999999999999999999", "1"), want: bad(LabelCount, `"99999999999999999999" is not a whole number`)},
		"memory missing":    {labels: without(gfd("x", "1", "1"), LabelMemory), want: bad(LabelMemory, "is missing")},
		"memory zero":       {labels: gfd("x", "1", "0"), want: bad(LabelMemory, "0 is not between 1 and 16777216")},
		"memory overflows":  {labels: gfd("x", "1", "9223372036854775807"), want: bad(LabelMemory, "9223372036854775807 is not between 1 and 16777216")},
		"replicas garbage":  {labels: gfd("x", "1", "1", LabelReplicas, "2x"), want: bad(LabelReplicas, `"2x" is not a whole number`)},
		"replicas absurd":   {labels: gfd("x", "64", "1", LabelReplicas, "64"), want: bad(LabelReplicas, "64 devices with 64 replicas each are more than 1024")},
		"strategy unknown":  {labels: gfd("x", "1", "1", LabelReplicas, "2", LabelSharing, "magic"), want: bad(LabelSharing, `"magic" is neither none, time-slicing nor mps`)},
		"MIG invalid":       {labels: gfd(a100+"-MIG-INVALID", "0", "0"), want: bad(LabelProduct, `"`+a100+`-MIG-INVALID": the MIG strategy single does not allow this MIG layout; partition all devices in the same way`)},
		"MIG count missing": {labels: gfd("x", "1", "1", "nvidia.com/mig-1g.5gb.memory", "4864"), want: bad("nvidia.com/mig-1g.5gb.count", "is missing")},
		"MIG memory absurd": {labels: gfd("x", "1", "1", "nvidia.com/mig-1g.5gb.count", "1", "nvidia.com/mig-1g.5gb.memory", "-1"), want: bad("nvidia.com/mig-1g.5gb.memory", "-1 is not between 1 and 16777216")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for i := range tc.want.Devices {
				if d := &tc.want.Devices[i]; tc.want.Sharing.Strategy == timeSlicing {
					d.OwnSpec().Shares, _, _ = strings.Cut(d.UUID, "::")
				}
			}
			var got result
			got.Devices, got.Resource, got.Sharing, got.Defect = DevicesFromLabels("n", tc.labels, tc.allocatable)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func bad(label, problem string) (r struct {
	Devices  []Device
	Resource string
	Sharing  Sharing
	Defect   *Defect
}) {
	r.Resource, r.Defect = DefaultDeviceResource, &Defect{label, problem}
	return r
}

// FuzzDevicesFromLabels checks that any labels give either a defect and no devices, or a
// bounded number of devices with UUIDs and valid memory, no more than are allocatable.
func FuzzDevicesFromLabels(f *testing.F) {
	f.Add("NVIDIA-A100", "8", "40960", "1", "none", "", "", "", int64(8))
	f.Add("NVIDIA-A100-SHARED", "4", "40960", "4", "time-slicing", "", "", "", int64(16))
	f.Add("NVIDIA-A100-MIG-1g.5gb", "56", "4864", "1", "none", "", "", "", int64(56))
	f.Add("NVIDIA-A100", "8", "40960", "2", "mps", "1g.5gb", "7", "4864", int64(7))
	f.Add("NVIDIA-A100-MIG-INVALID", "0", "0", "0", "", "", "", "", int64(0))
	f.Add("", "-1", "9223372036854775807", "99999999999999999999", "\x00", "..", "1e9", "0x10", int64(-1))
	f.Fuzz(func(t *testing.T, product, count, memory, replicas, strategy, profile, slices, sliceMemory string, offered int64) {
		labels := gfd(product, count, memory, LabelReplicas, replicas, LabelSharing, strategy)
		if profile != "" {
			labels[PartitionResource+profile+".count"] = slices
			labels[PartitionResource+profile+".memory"] = sliceMemory
		}
		for _, allocatable := range []Resources{nil, {{DefaultDeviceResource, offered}, {PartitionResource + profile, offered}}} {
			devices, resource, sharing, defect := DevicesFromLabels("node", labels, allocatable)
			if defect != nil {
				if len(devices) > 0 || defect.Label == "" || defect.Problem == "" || !strings.HasPrefix(defect.Label, "nvidia.com/") {
					t.Fatalf("%d devices, and the defect %+v", len(devices), defect)
				}
				continue
			}
			if len(devices) > MaxDevices || resource == "" || sharing.Replicas > MaxDevices {
				t.Fatalf("%d devices of %q, shared %+v", len(devices), resource, sharing)
			}
			if allocatable != nil && int64(len(devices)) > 2*max(0, offered) {
				t.Fatalf("%d devices of %d offered", len(devices), offered)
			}
			seen := map[string]bool{}
			for i, d := range devices {
				if d.UUID == "" || seen[d.UUID] || d.Memory < 0 || d.Memory > MaxDeviceMemory || d.Product == "" {
					t.Fatalf("device %s: %+v", strconv.Itoa(i), d)
				}
				seen[d.UUID] = true
			}
		}
	})
}
