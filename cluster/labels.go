package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The most devices that a node may have, and the most memory of a device. Labels with
// larger values are a Defect.
const (
	MaxDevices      = 1024
	MaxDeviceMemory = Bytes(16 << 40)
)

// The node labels of NVIDIA GPU Feature Discovery from which devices are derived.
const (
	LabelProduct  = "nvidia.com/gpu.product"
	LabelCount    = "nvidia.com/gpu.count"
	LabelMemory   = "nvidia.com/gpu.memory" // MiB, of each device
	LabelReplicas = "nvidia.com/gpu.replicas"
	LabelSharing  = "nvidia.com/gpu.sharing-strategy"
	LabelClique   = "nvidia.com/gpu.clique"
)

// SharedDeviceResource is the resource name of shared devices on nodes with a device
// plugin that renames them.
const SharedDeviceResource = DefaultDeviceResource + ".shared"

// HasDeviceLabels reports whether the labels describe devices, as GPU Feature Discovery
// does.
func HasDeviceLabels(labels map[string]string) bool {
	for _, l := range []string{LabelProduct, LabelCount, LabelMemory, LabelReplicas, LabelSharing} {
		if _, ok := labels[l]; ok {
			return true
		}
	}
	return len(migProfiles(labels)) > 0
}

// DevicesFromLabels returns the devices that the node's labels describe, the resource
// name of those that are requested by count, and how they are shared. If a label is
// missing or invalid, it returns a Defect and no devices. A node without such labels has
// no devices and no Defect.
//
// Labels count the devices in the machine; allocatable says how many of them are
// offered to tasks, as plain counts and not in thousandths. Devices beyond that are left
// out, and so are those of a resource that is not in allocatable. If allocatable is nil,
// it is not known, and all devices in the labels are used.
//
// Labels have no UUIDs, and do not say which GPU a MIG slice is a part of. UUIDs are
// therefore made from the node's name, and slices are distributed evenly over the GPUs.
func DevicesFromLabels(node string, labels map[string]string, allocatable Resources) (devices []Device, resource string, sharing Sharing, defect *Defect) {
	resource = DefaultDeviceResource
	if !HasDeviceLabels(labels) {
		return nil, resource, sharing, nil
	}
	r := labelReader{node: node, labels: labels, allocatable: allocatable}
	product := r.product(LabelProduct)
	count := r.number(LabelCount, 0, MaxDevices, nil)
	sharing = r.sharing(LabelReplicas, LabelSharing)
	if r.defect != nil {
		return nil, resource, Sharing{}, r.defect
	}
	base := Device{DeviceSpec: &DeviceSpec{Product: product, Type: "cuda", NUMA: -1, Link: labels[LabelClique]}}
	profiles := migProfiles(labels)
	if len(profiles) == 0 && r.isRenamed(product, sharing) {
		resource = SharedDeviceResource
	}
	switch {
	case len(profiles) > 0:
		devices = r.mixedStrategy(base, int(count), sharing, profiles)
	case strings.Contains(product, migMark):
		devices = r.singleStrategy(base, int(count), sharing, resource)
	default:
		devices = r.wholeDevices(base, int(count), sharing, resource)
	}
	if r.defect != nil {
		return nil, DefaultDeviceResource, Sharing{}, r.defect
	}
	return devices, resource, sharing, nil
}

// Replicate returns the replicas of the device that the sharing offers, or the device
// itself if it is not shared. With MPS each replica has its part of the memory. With
// time-slicing all replicas share the memory of the device.
func Replicate(d Device, s Sharing) []Device {
	if s.Replicas < 2 {
		return []Device{d}
	}
	out := make([]Device, s.Replicas)
	for i := range out {
		out[i] = d
		out[i].UUID = d.UUID + "::" + strconv.Itoa(i)
		own := out[i].OwnSpec()
		own.Replica = true
		own.Parent = cmp.Or(d.Parent, d.UUID)
		if s.Strategy == mps {
			own.Memory = d.Memory / Bytes(s.Replicas)
		} else {
			own.Shares = d.UUID
		}
	}
	return out
}

const (
	timeSlicing = "time-slicing"
	mps         = "mps"
	migMark     = "-MIG-"
	sharedMark  = "-SHARED"
)

// labelReader reads labels. It keeps the first defect that it finds; what it returns
// after that is not valid.
type labelReader struct {
	node        string
	labels      map[string]string
	allocatable Resources
	defect      *Defect
}

// fail records a defect of the label, unless there is one already.
func (r *labelReader) fail(label, format string, args ...any) {
	if r.defect == nil {
		r.defect = &Defect{Label: label, Problem: fmt.Sprintf(format, args...)}
	}
}

// number reads a whole number from least to most. If fallback is not nil, the label may
// be missing, and is then *fallback.
func (r *labelReader) number(label string, least, most int64, fallback *int64) int64 {
	text, ok := r.labels[label]
	if !ok {
		if fallback != nil {
			return *fallback
		}
		r.fail(label, "is missing")
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		r.fail(label, "%s is not a whole number", clipLabel(text))
	case v < least || v > most:
		r.fail(label, "%d is not between %d and %d", v, least, most)
	default:
		return v
	}
	return 0
}

func (r *labelReader) memory(label string) Bytes {
	return Bytes(r.number(label, 1, int64(MaxDeviceMemory>>20), nil)) << 20
}

func (r *labelReader) product(label string) string {
	p, ok := r.labels[label]
	switch {
	case !ok:
		r.fail(label, "is missing")
	case p == "":
		r.fail(label, "is empty")
	case strings.HasSuffix(p, migMark+"INVALID"):
		r.fail(label, "%s: the MIG strategy single does not allow this MIG layout; partition all devices in the same way", clipLabel(p))
	}
	return p
}

// sharing reads how many replicas each device has, and by which strategy. Labels of old
// versions have only the number of replicas, which are then made by time-slicing.
func (r *labelReader) sharing(replicas, strategy string) Sharing {
	one := int64(1)
	s := Sharing{Strategy: r.labels[strategy], Replicas: int(r.number(replicas, 0, MaxDevices, &one))}
	switch s.Strategy {
	case "", "none":
		s.Strategy = timeSlicing
	case timeSlicing, mps:
	default:
		r.fail(strategy, "%s is neither none, %s nor %s", clipLabel(s.Strategy), timeSlicing, mps)
	}
	if s.Replicas < 2 {
		return Sharing{}
	}
	return s
}

// isRenamed reports whether the node offers its devices as SharedDeviceResource.
func (r *labelReader) isRenamed(product string, s Sharing) bool {
	if r.allocatable != nil {
		return r.allocatable.Of(SharedDeviceResource) > 0 && r.allocatable.Of(DefaultDeviceResource) == 0
	}
	return s.Replicas > 1 && !strings.HasSuffix(product, sharedMark)
}

// offered returns how many of the devices, of which there are count, are allocatable
// under the resource name.
func (r *labelReader) offered(name string, count int) int {
	if r.allocatable == nil {
		return count
	}
	return int(max(0, min(int64(count), r.allocatable.Of(name))))
}

// replicate makes the replicas of every device, and drops those that are not
// allocatable. label is where a defect is reported.
func (r *labelReader) replicate(label string, devices []Device, s Sharing, resource string) []Device {
	if total := len(devices) * max(1, s.Replicas); total > MaxDevices {
		r.fail(label, "%d devices with %d replicas each are more than %d", len(devices), s.Replicas, MaxDevices)
		return nil
	}
	var out []Device
	for _, d := range devices {
		out = append(out, Replicate(d, s)...)
	}
	return out[:r.offered(resource, len(out))]
}

// wholeDevices returns devices that are not MIG slices, like base.
func (r *labelReader) wholeDevices(base Device, count int, s Sharing, resource string) []Device {
	if count == 0 {
		return nil
	}
	base.OwnSpec().Memory = r.memory(LabelMemory)
	devices := make([]Device, count)
	for i := range devices {
		devices[i] = base
		devices[i].UUID = r.gpuUUID(i)
	}
	return r.replicate(LabelReplicas, devices, s, resource)
}

func (r *labelReader) gpuUUID(i int) string { return "GPU-" + r.node + "-" + strconv.Itoa(i) }

// singleStrategy returns the slices of a node with the MIG strategy single: all GPUs are
// partitioned in the same way, count is the number of slices, and slices are requested
// by count like whole GPUs.
func (r *labelReader) singleStrategy(base Device, count int, s Sharing, resource string) []Device {
	if count == 0 {
		return nil
	}
	base.OwnSpec().Memory = r.memory(LabelMemory)
	_, profile, _ := strings.Cut(base.Product, migMark)
	per := slicesPerDevice(base.Product, strings.TrimSuffix(profile, sharedMark))
	devices := make([]Device, count)
	for i := range devices {
		devices[i] = base
		devices[i].UUID = fmt.Sprintf("MIG-%s-%d-%d", r.node, i/per, i%per)
		devices[i].OwnSpec().Parent = r.gpuUUID(i / per)
	}
	return r.replicate(LabelReplicas, devices, s, resource)
}

// slicesPerDevice returns how many slices of the profile a GPU can have. It is used to
// assign slices to GPUs, because the labels do not say how many GPUs there are.
func slicesPerDevice(product, profile string) int {
	i := strings.Index(profile, "g.")
	if i < 1 || profile[i-1] < '1' || profile[i-1] > '9' {
		return 1
	}
	return max(1, computeSlices(product)/int(profile[i-1]-'0'))
}

// mixedStrategy returns the devices of a node with the MIG strategy mixed: slices, which
// have a resource name for each profile, and GPUs that are not partitioned. count is the
// number of all GPUs; how many of these are not partitioned is known from allocatable
// only.
func (r *labelReader) mixedStrategy(base Device, count int, s Sharing, profiles []string) []Device {
	left := 0
	if r.allocatable != nil {
		replicas := max(1, s.Replicas)
		left = min(count, (r.offered(DefaultDeviceResource, MaxDevices)+replicas-1)/replicas)
	}
	devices := r.wholeDevices(base, left, s, DefaultDeviceResource)
	partitioned := max(1, count-left)
	next := make([]int, partitioned) // by partitioned GPU: how many slices were made of it so far
	for _, profile := range profiles {
		label := PartitionResource + profile
		slice := base
		slice.OwnSpec()
		slice.Profile, slice.Resource = profile, label
		slice.Product = cmp.Or(r.labels[label+".product"], slice.Product)
		n := int(r.number(label+".count", 0, MaxDevices, nil))
		if n > 0 {
			slice.Memory = r.memory(label + ".memory")
		}
		shared := r.sharing(label+".replicas", label+".sharing-strategy")
		if r.defect != nil {
			return nil
		}
		if r.allocatable != nil && r.allocatable.Of(label) == 0 && r.allocatable.Of(label+".shared") > 0 {
			slice.Resource = label + ".shared"
		}
		made := make([]Device, n)
		for i := range made {
			parent := i * partitioned / n
			made[i] = slice
			made[i].UUID = fmt.Sprintf("MIG-%s-%d-%d", r.node, left+parent, next[parent])
			made[i].OwnSpec().Parent = r.gpuUUID(left + parent)
			next[parent]++
		}
		devices = append(devices, r.replicate(label+".replicas", made, shared, slice.Resource)...)
		if len(devices) > MaxDevices {
			r.fail(label+".count", "the node would have more than %d devices", MaxDevices)
		}
	}
	return devices
}

// migProfiles returns the MIG profiles that the labels mention, sorted. A label for the
// count, memory or product of a profile is enough, so that a missing count is found as a
// defect.
func migProfiles(labels map[string]string) []string {
	found := map[string]bool{}
	for label := range labels {
		rest, ok := strings.CutPrefix(label, PartitionResource)
		if !ok {
			continue
		}
		for _, field := range []string{".count", ".memory", ".product"} {
			if profile, ok := strings.CutSuffix(rest, field); ok && profile != "" {
				found[profile] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// clipLabel quotes the value of a label, which may be long or not printable, and
// shortens it.
func clipLabel(s string) string {
	if len(s) > 64 {
		s = s[:64] + "…"
	}
	return strconv.Quote(s)
}
