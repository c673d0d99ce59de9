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
	// The virtual GPUs of Volcano are counted as those of HAMi, under other names.
	VolcanoDevices       = "volcano.sh/vgpu-number"
	VolcanoMemory        = "volcano.sh/vgpu-memory"            // in MiB
	VolcanoMemoryPercent = "volcano.sh/vgpu-memory-percentage" // of the memory of a device
	VolcanoCores         = "volcano.sh/vgpu-cores"             // percent of the cores of a device
	// Koordinator counts percent of devices: 200 are two devices, and 50 are half of one.
	KoordinatorGPU     = "koordinator.sh/gpu"              // of cores and memory
	KoordinatorCores   = "koordinator.sh/gpu-core"         // of cores
	KoordinatorPercent = "koordinator.sh/gpu-memory-ratio" // of memory
	KoordinatorMemory  = "koordinator.sh/gpu-memory"       // in bytes
	KoordinatorShared  = "koordinator.sh/gpu.shared"       // the number of devices of which parts are requested; 1 unless given
)

// DeviceResource is the name under which parts of devices of HAMi and of Koordinator are counted. It
// is that of whole devices, because pods that request these use the same devices.
const DeviceResource = cluster.DefaultDeviceResource

// parts are the resources that are parts of devices. summed are those of them that are only known for
// a node as a whole, so that it is not judged whether one device can provide a part.
var (
	parts = map[string]bool{
		HAMiMemory: true, HAMiMemoryPercent: true, HAMiCores: true, AlibabaMemory: true, AlibabaCount: true, AlibabaCores: true,
		VolcanoDevices: true, VolcanoMemory: true, VolcanoMemoryPercent: true, VolcanoCores: true,
		KoordinatorGPU: true, KoordinatorCores: true, KoordinatorPercent: true, KoordinatorMemory: true, KoordinatorShared: true,
	}
	summed = map[corev1.ResourceName]bool{
		"volcano.sh/gpu-memory": true, "tencent.com/vcuda-core": true, "tencent.com/vcuda-memory": true,
		"tke.cloud.tencent.com/qgpu-core": true, "tke.cloud.tencent.com/qgpu-memory": true,
	}
)

// IsPart reports whether the resource is a part of devices.
func IsPart(name string) bool { return parts[name] }

// Annotations and labels of nodes of which devices are shared.
const (
	AnnotationHAMi    = "hami.io/node-nvidia-register"
	AnnotationVolcano = "volcano.sh/node-vgpu-register"
	LabelAlibabaName  = "aliyun.accelerator/nvidia_name"
	LabelKoordinator  = "node.koordinator.sh/gpu-model"
	LabelVendor       = "node.koordinator.sh/gpu-vendor"
)

// SharedDevices sets the devices of a node of which HAMi, Volcano, Koordinator or the GPU share of
// Alibaba Cloud shares the devices. It changes no other node.
func SharedDevices(o *corev1.Node, n *cluster.Node) Notes {
	var notes Notes
	r := reporter{&notes}
	offered := amounts(Allocatable(o), allocatablePath(o), r)
	registered(o, n, AnnotationHAMi, DeviceResource, r)
	if !registered(o, n, AnnotationVolcano, VolcanoDevices, r) && offered.Of(VolcanoDevices) > 0 {
		r.note(Note{Ignored, allocatablePath(o).Add(VolcanoDevices), "that offer " + VolcanoDevices + " and do not list their devices in the annotation " + AnnotationVolcano + "; tasks that need them are not placed there", ""})
	}
	memory, count := offered.Of(AlibabaMemory), offered.Of(AlibabaCount)
	if memory > 0 {
		if count < 1 || count > int64(cluster.MaxDevices) {
			count = 1
		}
		each := cluster.Bytes(memory/count) * AlibabaUnit(o)
		replaceDevices(n, AlibabaMemory, madeDevices(n.Name, count, each), o.Labels[LabelAlibabaName])
	}
	koordinatorDevices(o, n, offered, r)
	kept := n.Resources[:0:0]
	for _, l := range n.Resources {
		if !IsPart(l.Name) {
			kept = append(kept, l)
		}
	}
	n.Resources = kept
	return notes
}

// registered sets the devices that the annotation of the node lists, and reports whether it lists
// some.
func registered(o *corev1.Node, n *cluster.Node, annotation, resource string, r reporter) bool {
	text := o.Annotations[annotation]
	if text == "" {
		return false
	}
	devices, err := RegisteredDevices(text)
	if err != nil {
		r.note(Note{Ignored, path{"metadata", "annotations", annotation}, "with a list of devices that cannot be read; its devices are those of its labels", err.Error()})
		return false
	}
	replaceDevices(n, resource, devices, o.Labels[cluster.LabelProduct])
	return len(devices) > 0
}

// koordinatorDevices sets the devices of a node that offers percent of devices, as Koordinator counts
// them. If a device plugin offers the same devices, they are kept.
func koordinatorDevices(o *corev1.Node, n *cluster.Node, offered cluster.Resources, r reporter) {
	percent := max(offered.Of(KoordinatorGPU), offered.Of(KoordinatorCores), offered.Of(KoordinatorPercent))
	count := percent / 100
	if count < 1 {
		return
	}
	if vendor := o.Labels[LabelVendor]; vendor != "" && vendor != "nvidia" {
		r.note(Note{Ignored, path{"metadata", "labels", LabelVendor}, "with devices of Koordinator that are not from NVIDIA; tasks that need parts of them are not placed there", vendor})
		return
	}
	have := int64(0)
	for i := range n.Devices {
		if d := &n.Devices[i]; d.Resource == DeviceResource || d.Resource == "" && n.DeviceResource == DeviceResource {
			have++
		}
	}
	if have == count {
		return
	}
	if count > int64(cluster.MaxDevices) {
		n.Devices, n.Defect = nil, &cluster.Defect{Label: KoordinatorPercent, Problem: fmt.Sprintf("%d devices are more than the %d that one node may have", count, cluster.MaxDevices)}
		return
	}
	total := Allocatable(o)[KoordinatorMemory]
	each := cluster.Bytes(max(0, total.Value()) / count)
	replaceDevices(n, DeviceResource, madeDevices(n.Name, count, each), o.Labels[LabelKoordinator])
}

// madeDevices returns devices of which only the number and the memory are known.
func madeDevices(node string, count int64, memory cluster.Bytes) []cluster.Device {
	out := make([]cluster.Device, count)
	for i := range out {
		out[i] = cluster.Device{DeviceSpec: &cluster.DeviceSpec{Memory: min(memory, cluster.MaxDeviceMemory), NUMA: -1}, UUID: NumberedDevice(node, i)}
	}
	return out
}

// NumberedDevice returns the UUID of a device of which only the number is known. Devices that are
// found by labels have the same.
func NumberedDevice(node string, index int) string { return fmt.Sprintf("GPU-%s-%d", node, index) }

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
		d.OwnSpec()
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

// RegisteredDevices reads the devices that HAMi or Volcano lists in an annotation of a node, as JSON
// or, in older versions, as fields between commas. HAMi lists UUID, number of parts, MiB, percent of
// cores, product, NUMA node and health; Volcano lists UUID, number of parts, MiB, product and health.
func RegisteredDevices(text string) ([]cluster.Device, error) {
	var out deviceList
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
			if err := out.add(d.ID, d.Type, d.Memory, d.NUMA, d.Health); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	for _, entry := range strings.Split(text, ":") {
		f := strings.Split(entry, ",")
		for i := range f {
			f[i] = strings.Join(strings.Fields(f[i]), " ")
		}
		if len(f) == 1 && f[0] == "" {
			continue
		}
		if len(f) < 5 {
			return nil, fmt.Errorf("%d fields for a device, want 5 or 7", len(f))
		}
		memory, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return nil, err
		}
		product, health, numa := f[3], f[4], -1
		if health != "true" && health != "false" {
			if len(f) < 7 {
				return nil, fmt.Errorf("%d fields for a device, want 5 or 7", len(f))
			}
			if product, health = f[4], f[6]; f[5] != "" {
				if numa, err = strconv.Atoi(f[5]); err != nil {
					numa = -1
				}
			}
		}
		if err := out.add(f[0], product, memory, numa, health == "true"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// deviceList is a list of devices with different UUIDs.
type deviceList []cluster.Device

func (l *deviceList) add(uuid, product string, memory int64, numa int, healthy bool) error {
	if uuid == "" || memory <= 0 || memory > int64(cluster.MaxDeviceMemory)>>20 {
		return fmt.Errorf("a device %q with %d MiB", uuid, memory)
	}
	for i := range *l {
		if (*l)[i].UUID == uuid {
			return fmt.Errorf("device %q is listed twice", uuid)
		}
	}
	*l = append(*l, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: strings.ReplaceAll(product, " ", "-"), Memory: cluster.Bytes(memory) << 20, NUMA: max(-1, numa)}, UUID: uuid, Lost: !healthy})
	return nil
}

// IsReservation reports whether the pod only keeps a device for pods that request parts of it, as KAI
// makes them.
func IsReservation(o *corev1.Pod) bool { return IsReservationNamespace(o.Namespace) }

// IsReservationNamespace reports whether the namespace is one in which KAI makes such pods.
func IsReservationNamespace(name string) bool {
	return strings.HasPrefix(name, "kai-resource-reservation") || strings.HasPrefix(name, "runai-reservation")
}
