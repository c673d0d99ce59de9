package convert

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of one amount. They leave room to add up a whole cluster in int64, and
// they lie below where the quantity library silently caps what it parses.
const (
	maxCores  = 1 << 30
	maxAmount = 1 << 60
)

// bytesOf converts an amount of memory; fractions of a byte count as one.
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

// milliOf converts an amount to thousandths; smaller fractions count as one.
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

// unitsOf converts an amount of something that is not divided.
func unitsOf(q resource.Quantity, at path, r reporter) int64 {
	v := bytesOf(q, at, r)
	if v > 0 && q.CmpInt64(v) != 0 {
		r.errorf(at, "%s is no whole number, and this resource is counted in whole ones", q.String())
		return 0
	}
	return v
}

// amountOf converts by what the resource is: thousandths of cores, bytes, or units.
func amountOf(name string, q resource.Quantity, at path, r reporter) int64 {
	switch {
	case name == cluster.CPU:
		return milliOf(q, at, r)
	case name == cluster.Memory, name == string(corev1.ResourceEphemeralStorage), strings.HasPrefix(name, corev1.ResourceHugePagesPrefix):
		return bytesOf(q, at, r)
	}
	return unitsOf(q, at, r)
}

// amounts converts a list, sorted by name, whatever is in it.
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

// deviceTypes are the resources that stand for devices, and the runtime each speaks.
var deviceTypes = map[string]string{
	"nvidia.com/gpu":        "cuda",
	"nvidia.com/gpu.shared": "cuda",
	"amd.com/gpu":           "rocm",
	"gpu.intel.com/i915":    "oneapi",
	"gpu.intel.com/xe":      "oneapi",
	"habana.ai/gaudi":       "gaudi",
	"huawei.com/Ascend910":  "cann",
}

// typeResource is the other way round: what devices of a type are counted under unless the node says.
func typeResource(kind string) string {
	for _, name := range []string{"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "habana.ai/gaudi", "huawei.com/Ascend910"} {
		if deviceTypes[name] == kind {
			return name
		}
	}
	return cluster.DefaultDeviceResource
}

// isDevice reports whether the resource is devices, which have ledgers of their own.
func isDevice(name string) bool {
	return deviceTypes[name] != "" || strings.HasPrefix(name, cluster.PartitionResource)
}

// profileOf is the MIG profile that a resource name asks for, "" if it asks for
// none. A resource that was renamed for sharing still asks for its profile.
func profileOf(name string) string {
	profile, ok := strings.CutPrefix(name, cluster.PartitionResource)
	if !ok {
		return ""
	}
	return strings.TrimSuffix(profile, ".shared")
}
