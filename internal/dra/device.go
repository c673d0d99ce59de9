// Package dra reads ResourceSlices and DeviceClasses. It finds out which devices of Berth a node
// has by them, and which sort of device the requests of a ResourceClaim select. It allocates
// nothing: the allocator of kube-scheduler does.
package dra

import (
	"cmp"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	resourcev1 "k8s.io/api/resource/v1"
)

// driver is a driver whose devices are devices of Berth.
type driver struct {
	resource string // the name under which whole devices are counted
	runtime  string
}

// drivers are the drivers whose devices are devices of Berth. Devices of other drivers, such as
// network cards, are allocated, but are counted for no queue.
var drivers = map[string]driver{
	"gpu.nvidia.com":  {"nvidia.com/gpu", "cuda"},
	"gpu.amd.com":     {"amd.com/gpu", "rocm"},
	"gpu.intel.com":   {"gpu.intel.com/xe", "oneapi"},
	"gaudi.intel.com": {"habana.ai/gaudi", "gaudi"},
}

// Resource returns the name under which whole devices of the driver are counted, and "" if they
// are not devices of Berth.
func Resource(driver string) string { return drivers[driver].resource }

// ID identifies a device of a ResourceSlice in a cluster.
type ID struct{ Driver, Pool, Device string }

// String returns the ID in the form "driver/pool/device". It is the UUID of the device in State.
func (id ID) String() string { return id.Driver + "/" + id.Pool + "/" + id.Device }

// Device is a device that a node has by a ResourceSlice. It is either a device of Berth, or a
// partition of one: GPUs that are partitioned when a partition is allocated are listed together
// with all partitions that are possible.
type Device struct {
	ID     ID
	Node   string
	Source *resourcev1.Device
	// Holder is the UUID of the device of Berth that is held if this one is allocated, and Share
	// how much of it is.
	Holder string
	Share  cluster.Milli
	Spec   cluster.Device
}

// IsPartition reports whether the device is a part of its Holder.
func (d *Device) IsPartition() bool { return d.Holder != d.Spec.UUID }

// Sort is what a request can select: a whole device, a MIG slice that exists, or a share of a
// device that is partitioned when it is allocated.
type Sort struct {
	Resource, Profile string
	Share             cluster.Milli
}

// Sort returns the sort of the device.
func (d *Device) Sort() Sort {
	if d.IsPartition() {
		return Sort{Resource: drivers[d.ID.Driver].resource, Share: d.Share}
	}
	return Sort{d.Spec.Resource, d.Spec.Profile, cluster.Whole}
}

// Holding returns what is held of the device of Berth if the device is allocated.
func (d *Device) Holding() cluster.Holding {
	return cluster.Holding{Device: d.Holder, Milli: d.Share, Memory: d.Spec.Memory}
}

// readDevice returns the device of the slice. It returns false if it is no device of Berth: it is
// not on one node, several claims can share it, or it is another use of a GPU that the slice also
// lists.
func readDevice(s *resourcev1.ResourceSlice, source *resourcev1.Device) (Device, bool) {
	of, known := drivers[s.Spec.Driver]
	node := s.Spec.NodeName
	if node == nil {
		node = source.NodeName
	}
	a := attributes{source, s.Spec.Driver}
	if !known || node == nil || *node == "" || source.AllowMultipleAllocations != nil && *source.AllowMultipleAllocations || a.text("type") == "vfio" {
		return Device{}, false
	}
	id := ID{s.Spec.Driver, s.Spec.Pool.Name, source.Name}
	d := Device{ID: id, Node: *node, Source: source, Holder: id.String(), Share: cluster.Whole}
	d.Spec = cluster.Device{
		DeviceSpec: &cluster.DeviceSpec{Type: of.runtime, Resource: of.resource, Memory: a.memory(), NUMA: a.number("numaNode", -1), PCIe: a.text("pcieRoot"), Product: product(cmp.Or(a.text("productName"), a.text("model"), a.text("product"), a.text("family"), "unknown"))},
		UUID:       d.Holder,
		Lost:       isTainted(source),
	}
	d.Spec.ID = cluster.DeviceID{Node: *node, Type: of.runtime, Index: number(d.Holder)}
	if profile := a.text("profile"); profile != "" && of.runtime == "cuda" {
		d.Spec.Profile, d.Spec.Resource, d.Spec.Parent = profile, cluster.PartitionResource+profile, a.text("parentUUID")
	}
	return d, true
}

// number returns the number of a device on its node. State numbers devices in the order in which
// it gets to know them, unless they have a number; this one depends on nothing but the name. It is
// above the numbers of devices that device plugins offer.
func number(uuid string) int {
	h := fnv.New32a()
	h.Write([]byte(uuid))
	return cluster.MaxDevices + int(h.Sum32()>>2)
}

// product returns the name of a product as node labels write it.
func product(name string) string { return strings.ReplaceAll(name, " ", "-") }

// isTainted reports whether a taint keeps claims without a toleration from the device.
func isTainted(d *resourcev1.Device) bool {
	for i := range d.Taints {
		if e := d.Taints[i].Effect; e == resourcev1.DeviceTaintEffectNoSchedule || e == resourcev1.DeviceTaintEffectNoExecute {
			return true
		}
	}
	return false
}

// attributes reads the attributes and capacities of a device. A name without a domain is in the
// domain of the driver.
type attributes struct {
	device *resourcev1.Device
	driver string
}

func (a attributes) find(name string) (resourcev1.DeviceAttribute, bool) {
	for _, domain := range [...]string{"", a.driver + "/", "resource.kubernetes.io/"} {
		if v, found := a.device.Attributes[resourcev1.QualifiedName(domain+name)]; found {
			return v, true
		}
	}
	return resourcev1.DeviceAttribute{}, false
}

// text returns the text with the name, and "" if there is none.
func (a attributes) text(name string) string {
	if v, found := a.find(name); found && v.StringValue != nil {
		return *v.StringValue
	}
	return ""
}

// number returns the number with the name, and otherwise if there is none.
func (a attributes) number(name string, otherwise int) int {
	if v, found := a.find(name); found && v.IntValue != nil && *v.IntValue >= 0 && *v.IntValue < 1<<16 {
		return int(*v.IntValue)
	}
	return otherwise
}

// memory returns the memory of the device, and 0 if it is not known.
func (a attributes) memory() cluster.Bytes {
	for _, domain := range [...]string{"", a.driver + "/"} {
		if c, found := a.device.Capacity[resourcev1.QualifiedName(domain+"memory")]; found {
			if n, exact := c.Value.AsInt64(); exact && n > 0 && n <= int64(cluster.MaxDeviceMemory) {
				return cluster.Bytes(n)
			}
		}
	}
	return 0
}

// compareNames compares names of devices: a number at the end is compared as a number.
func compareNames(a, b string) int {
	textA, numberA := splitNumber(a)
	textB, numberB := splitNumber(b)
	return cmp.Or(strings.Compare(textA, textB), cmp.Compare(numberA, numberB), strings.Compare(a, b))
}

func splitNumber(name string) (string, uint64) {
	text := strings.TrimRight(name, "0123456789")
	number, err := strconv.ParseUint(name[len(text):], 10, 64)
	if err != nil {
		return name, 0
	}
	return text, number
}
