package convert

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Limits of one amount, in units of the resource. The quantity library silently caps values
// at the maximum of int64, both in units and in thousandths. maxAmount is below the cap in
// units, and maxCores is below the cap in thousandths. A few amounts of maxAmount overflow an int64 if they are added, so package manifest
// limits the sum of each resource over all objects, and State checks sums by itself.
const (
	maxCores  = 1 << 30
	maxAmount = 1 << 60
)

// bytesOf converts an amount to whole units, such as bytes, rounded up. It returns 0 for a
// negative amount or one above maxAmount, which is an error.
func bytesOf(q resource.Quantity, at path, r reporter) int64 {
	switch {
	case q.Sign() < 0:
		r.errorf(at, "%s is negative", q.String())
	case q.CmpInt64(maxAmount) > 0:
		r.errorf(at, "%s is too large: the most is 1Ei", q.String())
	default:
		return q.Value()
	}
	return 0
}

// milliOf converts an amount to thousandths, rounded up. It returns 0 for a negative amount or
// one above maxCores, which is an error.
func milliOf(q resource.Quantity, at path, r reporter) int64 {
	switch {
	case q.Sign() < 0:
		r.errorf(at, "%s is negative", q.String())
	case q.CmpInt64(maxCores) > 0:
		r.errorf(at, "%s is too large: the most is %d", q.String(), maxCores)
	default:
		return q.MilliValue()
	}
	return 0
}

// unitsOf converts an amount of a resource that is counted in whole units.
func unitsOf(q resource.Quantity, at path, r reporter) int64 {
	v := bytesOf(q, at, r)
	if v > 0 && q.CmpInt64(v) != 0 {
		r.errorf(at, "%s is not a whole number, and this resource is counted in whole numbers", q.String())
		return 0
	}
	return v
}

// amountOf converts an amount to the unit of the resource: thousandths of cores for
// cpu, bytes for memory and storage, whole units for others.
func amountOf(name string, q resource.Quantity, at path, r reporter) int64 {
	switch {
	case name == cluster.CPU:
		return milliOf(q, at, r)
	case isInBytes(name):
		return bytesOf(q, at, r)
	}
	return unitsOf(q, at, r)
}

// isInBytes reports whether the resource is counted in bytes.
func isInBytes(name string) bool {
	return name == cluster.Memory || name == string(corev1.ResourceEphemeralStorage) || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix)
}

// amounts converts a list, sorted by name.
func amounts(list corev1.ResourceList, at path, r reporter) cluster.Resources {
	out := make(cluster.Resources, 0, len(list))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if name == "" {
			r.errorf(at, "a resource without a name")
			continue
		}
		out = append(out, cluster.Amount{Name: string(name), Value: amountOf(string(name), list[name], at.Add(string(name)), r)})
	}
	return out
}

// deviceTypes are the resources that are devices, and the runtime of each.
var deviceTypes = map[string]string{
	"nvidia.com/gpu":        "cuda",
	"nvidia.com/gpu.shared": "cuda",
	"amd.com/gpu":           "rocm",
	"gpu.intel.com/i915":    "oneapi",
	"gpu.intel.com/xe":      "oneapi",
	"habana.ai/gaudi":       "gaudi",
	"huawei.com/Ascend910":  "cann",
}

// typeResource returns the resource under which devices of the runtime are counted if
// the node does not name one.
func typeResource(runtime string) string {
	for _, name := range []string{"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "habana.ai/gaudi", "huawei.com/Ascend910"} {
		if deviceTypes[name] == runtime {
			return name
		}
	}
	return cluster.DefaultDeviceResource
}

// IsDevice reports whether the resource is devices. State counts these one by one and
// not as an amount.
func IsDevice(name string) bool {
	return deviceTypes[name] != "" || strings.HasPrefix(name, cluster.PartitionResource)
}

// profileOf returns the MIG profile in a resource name, "" if there is none. The suffix
// of a resource that was renamed for sharing is not part of the profile.
func profileOf(name string) string {
	profile, ok := strings.CutPrefix(name, cluster.PartitionResource)
	if !ok {
		return ""
	}
	return strings.TrimSuffix(profile, ".shared")
}
