package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// What a node's devices may come to. Labels that say more are not believed.
const (
	MaxDevices      = 1024
	MaxDeviceMemory = Bytes(16 << 40)
)

// Labels of GPU Feature Discovery.
const (
	LabelProduct  = "nvidia.com/gpu.product"
	LabelCount    = "nvidia.com/gpu.count"
	LabelMemory   = "nvidia.com/gpu.memory" // MiB, of each device
	LabelReplicas = "nvidia.com/gpu.replicas"
	LabelSharing  = "nvidia.com/gpu.sharing-strategy"
	LabelClique   = "nvidia.com/gpu.clique"
)

// SharedDeviceResource is what shared devices may be renamed to.
const SharedDeviceResource = DefaultDeviceResource + ".shared"

// HasDeviceLabels reports whether GPU Feature Discovery described devices here.
func HasDeviceLabels(labels map[string]string) bool {
	for _, l := range []string{LabelProduct, LabelCount, LabelMemory, LabelReplicas, LabelSharing} {
		if _, ok := labels[l]; ok {
			return true
		}
	}
	return len(migProfiles(labels)) > 0
}

// DevicesFromLabels makes a node's devices from its labels, and says under what
// resource name and how they are shared. Labels that are missing or make no
// sense come back as a Defect and no devices.
//
// Allocatable caps the devices: a label counts what is in the machine,
// allocatable what is offered. Amounts of devices in it are plain counts, not
// thousandths. A resource that is not in it is not offered; nil means that
// it is not known, and the labels are believed.
//
// Labels hold no UUIDs, and say only how many slices there are and not which
// device each is cut from: UUIDs are made from the node's name, and slices are
// spread evenly over devices.
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
	base := Device{Product: product, Type: "cuda", NUMA: -1, Link: labels[LabelClique]}
	profiles := migProfiles(labels)
	if len(profiles) == 0 && r.renamed(product, sharing) {
		resource = SharedDeviceResource
	}
	switch {
	case len(profiles) > 0:
		devices = r.mixed(base, int(count), sharing, profiles)
	case strings.Contains(product, migMark):
		devices = r.single(base, int(count), sharing, resource)
	default:
		devices = r.whole(base, int(count), sharing, resource)
	}
	if r.defect != nil {
		return nil, DefaultDeviceResource, Sharing{}, r.defect
	}
	return devices, resource, sharing, nil
}

// Replicate makes the devices that sharing offers of one. MPS divides the
// memory; time-slicing shows all of it to every task and isolates none.
func Replicate(d Device, s Sharing) []Device {
	if s.Replicas < 2 {
		return []Device{d}
	}
	out := make([]Device, s.Replicas)
	for i := range out {
		out[i] = d
		out[i].UUID = d.UUID + "::" + strconv.Itoa(i)
		out[i].Replica = true
		out[i].Parent = cmp.Or(d.Parent, d.UUID)
		if s.Strategy == mps {
			out[i].Memory = d.Memory / Bytes(s.Replicas)
		} else {
			out[i].Shares = d.UUID
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

// labelReader keeps the first defect it meets; later reads then mean nothing.
type labelReader struct {
	node        string
	labels      map[string]string
	allocatable Resources
	defect      *Defect
}

func (r *labelReader) fail(label, format string, args ...any) {
	if r.defect == nil {
		r.defect = &Defect{Label: label, Problem: fmt.Sprintf(format, args...)}
	}
}

// number reads a label between bounds; where it may be missing, otherwise says what it then is.
func (r *labelReader) number(label string, least, most int64, otherwise *int64) int64 {
	text, ok := r.labels[label]
	if !ok {
		if otherwise != nil {
			return *otherwise
		}
		r.fail(label, "is missing")
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		r.fail(label, "%s is no whole number", clipLabel(text))
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
		r.fail(label, "%s: the MIG layout is not one that strategy single allows; partition all devices alike", clipLabel(p))
	}
	return p
}

// sharing reads how often each device is offered. Old versions of the labels
// know replicas only, which then means time-slicing.
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

// renamed reports whether the node offers its shared devices under their own name.
func (r *labelReader) renamed(product string, s Sharing) bool {
	if r.allocatable != nil {
		return r.allocatable.Of(SharedDeviceResource) > 0 && r.allocatable.Of(DefaultDeviceResource) == 0
	}
	return s.Replicas > 1 && !strings.HasSuffix(product, sharedMark)
}

// cap is how many of want are offered under the name.
func (r *labelReader) cap(name string, want int) int {
	if r.allocatable == nil {
		return want
	}
	return int(max(0, min(int64(want), r.allocatable.Of(name))))
}

// share makes replicas of every device and drops what allocatable does not have.
func (r *labelReader) share(label string, devices []Device, s Sharing, resource string) []Device {
	if total := len(devices) * max(1, s.Replicas); total > MaxDevices {
		r.fail(label, "%d devices with %d replicas each are more than %d", len(devices), s.Replicas, MaxDevices)
		return nil
	}
	var out []Device
	for _, d := range devices {
		out = append(out, Replicate(d, s)...)
	}
	return out[:r.cap(resource, len(out))]
}

func (r *labelReader) whole(base Device, count int, s Sharing, resource string) []Device {
	if count == 0 {
		return nil
	}
	base.Memory = r.memory(LabelMemory)
	devices := make([]Device, count)
	for i := range devices {
		devices[i] = base
		devices[i].UUID = r.gpu(i)
	}
	return r.share(LabelReplicas, devices, s, resource)
}

func (r *labelReader) gpu(i int) string { return "GPU-" + r.node + "-" + strconv.Itoa(i) }

// single is every device cut alike: count counts slices, and they are asked for like devices.
func (r *labelReader) single(base Device, count int, s Sharing, resource string) []Device {
	if count == 0 {
		return nil
	}
	base.Memory = r.memory(LabelMemory)
	_, profile, _ := strings.Cut(base.Product, migMark)
	per := slicesPerDevice(base.Product, strings.TrimSuffix(profile, sharedMark))
	devices := make([]Device, count)
	for i := range devices {
		devices[i] = base
		devices[i].UUID = fmt.Sprintf("MIG-%s-%d-%d", r.node, i/per, i%per)
		devices[i].Parent = r.gpu(i / per)
	}
	return r.share(LabelReplicas, devices, s, resource)
}

// slicesPerDevice is how many slices of the profile a device has room for. The
// labels do not say how many devices there are, only slices.
func slicesPerDevice(product, profile string) int {
	i := strings.Index(profile, "g.")
	if i < 1 || profile[i-1] < '1' || profile[i-1] > '9' {
		return 1
	}
	return max(1, computeSlices(product)/int(profile[i-1]-'0'))
}

// mixed is slices under names of their own beside whole devices. The count of
// devices includes those that are cut; only allocatable tells them apart.
func (r *labelReader) mixed(base Device, count int, s Sharing, profiles []string) []Device {
	left := 0
	if r.allocatable != nil {
		replicas := max(1, s.Replicas)
		left = min(count, (r.cap(DefaultDeviceResource, MaxDevices)+replicas-1)/replicas)
	}
	devices := r.whole(base, left, s, DefaultDeviceResource)
	cutUp := max(1, count-left)
	next := make([]int, cutUp) // slices made of each so far
	for _, profile := range profiles {
		label := PartitionResource + profile
		slice := base
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
			parent := i * cutUp / n
			made[i] = slice
			made[i].UUID = fmt.Sprintf("MIG-%s-%d-%d", r.node, left+parent, next[parent])
			made[i].Parent = r.gpu(left + parent)
			next[parent]++
		}
		devices = append(devices, r.share(label+".replicas", made, shared, slice.Resource)...)
		if len(devices) > MaxDevices {
			r.fail(label+".count", "the node would have more than %d devices", MaxDevices)
		}
	}
	return devices
}

// migProfiles are the profiles that labels describe slices of, sorted. Any
// label of a profile counts: one whose count is missing is a defect, not nothing.
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

// clipLabel quotes a label's value, which need not be short or printable.
func clipLabel(s string) string {
	if len(s) > 64 {
		s = s[:64] + "…"
	}
	return strconv.Quote(s)
}
