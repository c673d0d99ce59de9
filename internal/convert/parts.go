package convert

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
)

// Resources by which pods request parts of devices, and nodes offer them.
const (
	// HAMi counts nvidia.com/gpu in devices, and these for each of them.
	HAMiMemory        = "nvidia.com/gpumem"            // in MiB
	HAMiMemoryPercent = "nvidia.com/gpumem-percentage" // of the memory of a device
	HAMiCores         = "nvidia.com/gpucores"          // percent of the cores of a device
	// The GPU share of Alibaba Cloud counts memory of devices, in GiB unless its device plugin is
	// configured otherwise, and devices.
	AlibabaMemory = "aliyun.com/gpu-mem"
	AlibabaCount  = "aliyun.com/gpu-count"
	AlibabaCores  = "aliyun.com/gpu-core.percentage"
)

// IsPart reports whether the resource is a part of devices.
func IsPart(name string) bool {
	switch name {
	case HAMiMemory, HAMiMemoryPercent, HAMiCores, AlibabaMemory, AlibabaCount, AlibabaCores:
		return true
	}
	return false
}

// Annotations and labels of nodes of which devices are shared.
const (
	AnnotationHAMi   = "hami.io/node-nvidia-register"
	LabelAlibabaName = "aliyun.accelerator/nvidia_name"
)

// SharedDevices sets the devices of a node of which HAMi or the GPU share of Alibaba Cloud shares the
// devices. It changes no other node.
func SharedDevices(o *corev1.Node, n *cluster.Node) Notes {
	var notes Notes
	r := reporter{&notes}
	if text := o.Annotations[AnnotationHAMi]; text != "" {
		devices, err := HAMiDevices(text)
		if err != nil {
			r.note(Note{Ignored, path{"metadata", "annotations", AnnotationHAMi}, "with a list of devices that cannot be read; its devices are those of its labels", err.Error()})
		} else {
			product := o.Labels[cluster.LabelProduct]
			replaceDevices(n, "nvidia.com/gpu", devices, product)
		}
	}
	offered := amounts(Allocatable(o), allocatablePath(o), r)
	memory, count := offered.Of(AlibabaMemory), offered.Of(AlibabaCount)
	if memory > 0 {
		if count < 1 || count > int64(cluster.MaxDevices) {
			count = 1
		}
		each := cluster.Bytes(memory/count) * AlibabaUnit(o)
		devices := make([]cluster.Device, count)
		for i := range devices {
			devices[i] = cluster.Device{UUID: AlibabaDevice(n.Name, i), Memory: min(each, cluster.MaxDeviceMemory), NUMA: -1}
		}
		replaceDevices(n, AlibabaMemory, devices, o.Labels[LabelAlibabaName])
	}
	kept := n.Resources[:0:0]
	for _, l := range n.Resources {
		if !IsPart(l.Name) {
			kept = append(kept, l)
		}
	}
	n.Resources = kept
	return notes
}

// AlibabaDevice returns the UUID that a device has which the GPU share of Alibaba Cloud counts.
func AlibabaDevice(node string, index int) string { return fmt.Sprintf("GPU-%s-%d", node, index) }

// AlibabaUnit returns how many bytes a unit of memory is on the node: a GiB, or a MiB if each device
// would have more than a TiB otherwise. It is 0 for a node that does not share devices in this way.
func AlibabaUnit(o *corev1.Node) cluster.Bytes {
	list := Allocatable(o)
	memory, found := list[AlibabaMemory]
	if !found || memory.Sign() <= 0 {
		return 0
	}
	count := list[AlibabaCount]
	if memory.Value()/max(1, count.Value()) > 1024 {
		return 1 << 20
	}
	return 1 << 30
}

// replaceDevices replaces the devices of the resource by those given. Their product is the given one,
// if it is not "".
func replaceDevices(n *cluster.Node, resource string, devices []cluster.Device, product string) {
	var out []cluster.Device
	for _, d := range n.Devices {
		if d.Resource != resource && (d.Resource != "" || n.DeviceResource != resource) {
			out = append(out, d)
		}
	}
	for _, d := range devices {
		d.Type, d.Resource = "cuda", resource
		if product != "" {
			d.Product = product
		}
		if d.Product == "" {
			d.Product = "unknown"
		}
		out = append(out, d)
	}
	if len(out) > cluster.MaxDevices {
		n.Devices, n.Defect = nil, &cluster.Defect{Label: resource, Problem: fmt.Sprintf("%d devices are more than the %d that one node may have", len(out), cluster.MaxDevices)}
		return
	}
	n.Devices, n.DeviceResource, n.Sharing, n.Defect = out, resource, cluster.Sharing{}, nil
}

// HAMiDevices reads the devices that HAMi lists in an annotation of a node, as JSON or, in older
// versions, as fields between commas: UUID, number of parts, MiB, percent of cores, product, NUMA node
// and health.
func HAMiDevices(text string) ([]cluster.Device, error) {
	var out []cluster.Device
	add := func(uuid, product string, memory int64, numa int, healthy bool) error {
		if uuid == "" || memory <= 0 || memory > int64(cluster.MaxDeviceMemory)>>20 {
			return fmt.Errorf("a device %q with %d MiB", uuid, memory)
		}
		for i := range out {
			if out[i].UUID == uuid {
				return fmt.Errorf("device %q is listed twice", uuid)
			}
		}
		out = append(out, cluster.Device{UUID: uuid, Product: strings.ReplaceAll(product, " ", "-"), Memory: cluster.Bytes(memory) << 20, NUMA: max(-1, numa), Lost: !healthy})
		return nil
	}
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		var list []struct {
			ID     string `json:"id"`
			Memory int64  `json:"devmem"`
			Type   string `json:"type"`
			NUMA   int    `json:"numa"`
			Health bool   `json:"health"`
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, err
		}
		for _, d := range list {
			if err := add(d.ID, d.Type, d.Memory, d.NUMA, d.Health); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	for _, entry := range strings.Split(text, ":") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		f := strings.Split(entry, ",")
		if len(f) < 7 {
			return nil, fmt.Errorf("%d fields for a device, want 7", len(f))
		}
		memory, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return nil, err
		}
		numa, err := strconv.Atoi(f[5])
		if err != nil {
			numa = -1
		}
		if err := add(f[0], f[4], memory, numa, f[6] == "true"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// IsReservation reports whether the pod only keeps a device for pods that request parts of it, as KAI
// makes them. The parts are counted instead.
func IsReservation(o *corev1.Pod) bool {
	return strings.HasPrefix(o.Namespace, "kai-resource-reservation") || strings.HasPrefix(o.Namespace, "runai-reservation")
}
