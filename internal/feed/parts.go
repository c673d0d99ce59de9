package feed

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	corev1 "k8s.io/api/core/v1"
)

// AnnotationsListed list the devices that a running pod of HAMi or Volcano holds: entries
// UUID,type,MiB,percent of cores, which end with a colon, and containers between semicolons.
var AnnotationsListed = []string{"hami.io/vgpu-devices-allocated", "hami.io/vgpu-ids-new", "volcano.sh/vgpu-ids-new"}

// The annotations with the numbers of the devices that a running pod holds.
const (
	// of the GPU share of Alibaba Cloud: one number
	annotationAlibaba = "ALIYUN_COM_GPU_MEM_IDX"
	// of its later versions: {"0":{"1":8}}, which means for container 0: 8 units of device 1
	annotationShared = "scheduler.framework.gpushare.allocation"
	// of Koordinator: {"gpu":[{"minor":1}]}
	AnnotationKoordinator = "scheduling.koordinator.sh/device-allocated"
)

// refuseParts notes resources by which pods request parts of devices in a way that only the device
// plugin and the scheduler of HAMi understand.
func (r *reader) refuseParts() {
	for i := range r.pod.Spec.Containers {
		for _, name := range []corev1.ResourceName{convert.HAMiMemory, convert.HAMiMemoryPercent, convert.HAMiCores} {
			if _, found := r.pod.Spec.Containers[i].Resources.Requests[name]; found {
				r.invalid(field.Path{"spec", "containers", i, "resources", "requests", string(name)}, "a part of a device cannot be enforced here by this resource; request whole devices, or MIG slices")
			}
		}
	}
}

// asked reads how much of resources some containers request together.
type asked struct {
	containers []corev1.Container
	at         field.Path
}

// of returns how much of the resource the containers request.
func (c asked) of(name corev1.ResourceName) int64 {
	sum := int64(0)
	for i := range c.containers {
		q, has := c.containers[i].Resources.Requests[name]
		if !has {
			q = c.containers[i].Resources.Limits[name]
		}
		if sum += q.Value(); sum < 0 {
			return math.MaxInt64
		}
	}
	return sum
}

// partResources sets the need from resources that are parts of devices. Init containers that end before
// the others start hold their devices alone, so that the larger request counts.
func (r *reader) partResources(need *cluster.Need, unit cluster.Bytes) {
	together, before := r.containers()
	part, ofPod := r.parts(together, unit)
	for _, c := range before {
		alone, all := r.parts([]asked{c}, unit)
		if part.None() {
			part, ofPod = alone, all
		} else if !alone.None() {
			devices := max(part.Devices, alone.Devices)
			part = r.larger(part, alone, c.at)
			part.Devices = devices
		}
	}
	at := field.Path{"spec", "containers"}
	switch {
	case part.None():
		return
	case ofPod && part.Resource == need.Resource && part.Devices == need.Devices && part.Memory == 0 && part.Share == 0:
		return // Koordinator counts whole devices under both names
	case need.Devices > 0 && (ofPod || need.Resource != part.Resource):
		r.invalid(at, "the pod requests %s too; keep one", need.Resource)
		return
	case need.Devices > 0:
		part.Devices = need.Devices // HAMi counts devices under the name of whole ones
	}
	if part.Devices > cluster.MaxDevices {
		r.invalid(at, "%d are more than the %d devices that one node may have", part.Devices, cluster.MaxDevices)
		return
	}
	need.Devices, need.Resource, need.Memory, need.Share = part.Devices, part.Resource, part.Memory, part.Share
}

// containers returns the containers that run together, and the init containers that end before.
func (r *reader) containers() (together, before []asked) {
	s := &r.pod.Spec
	for i := range s.InitContainers {
		c := asked{s.InitContainers[i : i+1], field.Path{"spec", "initContainers", i, "resources"}}
		if p := s.InitContainers[i].RestartPolicy; p != nil && *p == corev1.ContainerRestartPolicyAlways {
			together = append(together, c)
		} else {
			before = append(before, c)
		}
	}
	for i := range s.Containers {
		together = append(together, asked{s.Containers[i : i+1], field.Path{"spec", "containers", i, "resources"}})
	}
	return together, before
}

// parts returns which parts of devices the containers request. ofPod is set if the containers request
// them together, and not each its own.
func (r *reader) parts(list []asked, unit cluster.Bytes) (need cluster.Need, ofPod bool) {
	if need = r.virtualDevices(list); !need.None() || len(list) == 0 {
		return need, false
	}
	all := asked{at: list[0].at}
	for _, c := range list {
		all.containers = append(all.containers, c.containers...)
	}
	r.unreadCores(all, convert.AlibabaCores)
	if need = r.alibabaPart(all, unit); need.None() {
		need = r.koordinatorPart(all)
	}
	return need, true
}

// virtualDevices returns which parts of devices the containers request in the way of HAMi or Volcano.
// Each container has devices of its own. A container that requests devices beside one that requests
// parts has whole devices.
func (r *reader) virtualDevices(list []asked) cluster.Need {
	var sum cluster.Need
	isHAMi := slices.ContainsFunc(list, func(c asked) bool { return c.of(convert.HAMiMemory) > 0 || c.of(convert.HAMiMemoryPercent) > 0 })
	for _, c := range list {
		r.unreadCores(c, convert.HAMiCores, convert.VolcanoCores)
		more := r.virtualDevice(c)
		if whole := c.of(convert.DeviceResource); more.None() && isHAMi && whole > 0 {
			more = cluster.Need{Devices: clipped(whole), Resource: convert.DeviceResource}
		}
		if more.None() {
			continue
		}
		devices := min(sum.Devices+more.Devices, cluster.MaxDevices+1)
		if sum.None() {
			sum = more
		} else {
			sum = r.larger(sum, more, c.at)
		}
		sum.Devices = devices
	}
	return sum
}

// larger returns the larger one of two parts of devices, of which all devices of the pod are then
// counted. Memory and shares cannot be compared, so that whole devices are counted for both.
func (r *reader) larger(a, b cluster.Need, at field.Path) cluster.Need {
	if a.Resource == b.Resource && a.Memory == b.Memory && a.Share == b.Share {
		return a
	}
	isWhole := func(n cluster.Need) bool { return n.Memory == 0 && n.Share == 0 }
	out := cluster.Need{Devices: max(a.Devices, b.Devices), Resource: b.Resource}
	if isWhole(a) || isWhole(b) || (a.Memory > 0) != (b.Memory > 0) {
		r.ignored(at, "with several containers that request different parts of devices; berth counts whole devices")
		return out
	}
	r.ignored(at, "with several containers that request different parts of devices; berth counts each part as large as the largest")
	out.Memory, out.Share = max(a.Memory, b.Memory), max(a.Share, b.Share)
	return out
}

// virtualDevice returns which parts of devices a container requests in the way of HAMi or Volcano.
func (r *reader) virtualDevice(c asked) cluster.Need {
	if m, percent := c.of(convert.HAMiMemory), c.of(convert.HAMiMemoryPercent); m > 0 || percent > 0 {
		return r.partWith(c, max(1, c.of(convert.DeviceResource)), convert.DeviceResource, m, percent)
	}
	m, percent := c.of(convert.VolcanoMemory), c.of(convert.VolcanoMemoryPercent)
	if devices := c.of(convert.VolcanoDevices); devices > 0 || m > 0 || percent > 0 {
		return r.partWith(c, max(1, devices), convert.VolcanoDevices, m, percent)
	}
	return cluster.Need{}
}

// alibabaPart returns which parts of devices are requested in the way of Alibaba Cloud. unit is how
// many bytes a unit of memory is.
func (r *reader) alibabaPart(c asked, unit cluster.Bytes) cluster.Need {
	memory := c.of(convert.AlibabaMemory)
	if memory <= 0 {
		return cluster.Need{}
	}
	if unit == 0 {
		unit = 1 << 30
	}
	devices := max(1, c.of(convert.AlibabaCount))
	return cluster.Need{Devices: clipped(devices), Resource: convert.AlibabaMemory, Memory: r.partMemory((memory+devices-1)/devices, unit, c.at)}
}

// partWith returns a need for parts of devices, by MiB or else by percent. Without both, it is for
// whole devices.
func (r *reader) partWith(c asked, devices int64, resource string, mebibytes, percent int64) cluster.Need {
	out := cluster.Need{Devices: clipped(devices), Resource: resource}
	switch {
	case mebibytes > 0:
		out.Memory = r.partMemory(mebibytes, 1<<20, c.at)
	case percent > 100:
		r.invalid(c.at, "%d percent are more than a device has", percent)
	case percent > 0:
		out.Share = cluster.Milli(percent * 10)
	}
	return out
}

// koordinatorPart returns which parts of devices are requested in the way of Koordinator.
func (r *reader) koordinatorPart(c asked) cluster.Need {
	memory, percent, cores := c.of(convert.KoordinatorMemory), c.of(convert.KoordinatorPercent), c.of(convert.KoordinatorCores)
	if both := c.of(convert.KoordinatorGPU); both > 0 {
		percent, cores = both, both
	}
	if percent == 0 && memory == 0 {
		percent = cores
	}
	if percent <= 0 && memory <= 0 {
		return cluster.Need{}
	}
	out := cluster.Need{Devices: clipped(max(1, c.of(convert.KoordinatorShared), percent/100)), Resource: convert.DeviceResource}
	if memory > 0 {
		if out.Devices == 1 && cores > 100 {
			out.Devices = clipped(cores / 100)
		}
		out.Memory = r.partMemory(memory/int64(out.Devices), 1, c.at)
		return out
	}
	if each := percent / int64(out.Devices); each < 100 {
		out.Share = cluster.Milli(each * 10)
	} else if percent%100 != 0 {
		r.invalid(c.at, "%d percent are neither a part of a device nor whole devices", percent)
	}
	if cores > 0 && cores != percent {
		r.ignored(c.at, "with "+convert.KoordinatorCores+", which berth does not read: the memory decides how much of a device a pod holds")
	}
	return out
}

// unreadCores notes requests for cores of devices.
func (r *reader) unreadCores(c asked, names ...corev1.ResourceName) {
	for _, name := range names {
		if c.of(name) != 0 {
			r.ignored(c.at, "with "+string(name)+", which berth does not read: the memory decides how much of a device a pod holds")
		}
	}
}

// clipped returns the number of devices, or one more than a node may have if it is larger.
func clipped(devices int64) int { return int(max(0, min(devices, cluster.MaxDevices+1))) }

// partMemory returns an amount of device memory in bytes.
func (r *reader) partMemory(units int64, unit cluster.Bytes, at field.Path) cluster.Bytes {
	if units < 0 || units > int64(cluster.MaxDeviceMemory/unit) {
		r.invalid(at, "%d units of device memory are more than a device has", units)
		return 0
	}
	return cluster.Bytes(units) * unit
}

// ignored adds a note about what is not read, unless there is the same note already.
func (r *reader) ignored(at field.Path, message string) {
	if slices.ContainsFunc(*r.notes, func(n convert.Note) bool { return n.Message == message }) {
		return
	}
	*r.notes = append(*r.notes, convert.Note{Severity: convert.Ignored, Path: at, Message: message})
}

// partHoldings returns the devices of which parts were given to the pod, without how much of them;
// nil if that is not known.
func (r *reader) partHoldings(shape *cluster.Shape) []cluster.Holding {
	a, node := r.pod.Annotations, r.pod.Spec.NodeName
	if node == "" {
		return nil
	}
	var out []cluster.Holding
	add := func(uuid string) {
		if uuid != "" && !slices.ContainsFunc(out, func(h cluster.Holding) bool { return h.Device == uuid }) {
			out = append(out, cluster.Holding{Device: uuid})
		}
	}
	for _, index := range NumberedDevices(a) {
		add(convert.NumberedDevice(node, index))
	}
	for _, key := range AnnotationsListed {
		if len(out) > 0 {
			break
		}
		for _, entry := range strings.FieldsFunc(a[key], func(c rune) bool { return c == ':' || c == ';' }) {
			if uuid, _, found := strings.Cut(strings.TrimSpace(entry), ","); found {
				add(uuid)
			}
		}
	}
	if len(out) != shape.Need.Devices {
		return nil
	}
	return out
}

// NumberedDevices returns the numbers of devices that the annotations of a running pod have, sorted.
func NumberedDevices(a map[string]string) []int {
	found := map[int]bool{}
	if index, err := strconv.Atoi(a[annotationAlibaba]); err == nil {
		found[index] = true
	}
	var shared map[string]map[string]int64
	if json.Unmarshal([]byte(a[annotationShared]), &shared) == nil {
		for _, devices := range shared {
			for text := range devices {
				if index, err := strconv.Atoi(text); err == nil {
					found[index] = true
				}
			}
		}
	}
	var allocated struct {
		GPU []struct {
			Minor *int `json:"minor"`
		} `json:"gpu"`
	}
	if json.Unmarshal([]byte(a[AnnotationKoordinator]), &allocated) == nil {
		for _, d := range allocated.GPU {
			if d.Minor != nil {
				found[*d.Minor] = true
			}
		}
	}
	delete(found, -1) // the GPU share of Alibaba Cloud writes -1 if no device was chosen
	return slices.Sorted(maps.Keys(found))
}
