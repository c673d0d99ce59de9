// Package quantity formats amounts of memory, cores, devices and time. Text for people
// is rounded ("38.5 GiB"); text for manifests keeps every digit ("39427Mi").
package quantity

import (
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
)

var binaryUnits = []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}

const gibUnit = 3 // the index of GiB in binaryUnits

// bytesText formats memory in the largest unit that gives at least 1: "38 GiB". It has
// at most the given number of decimals.
func bytesText(v int64, decimals int) string { return bytesUpTo(v, decimals, len(binaryUnits)-1) }

// bytesUpTo is bytesText with units up to the given one.
func bytesUpTo(v int64, decimals, most int) string {
	unit, scale := 0, int64(1)
	for (v/scale >= 1024 || v/scale <= -1024) && unit < most {
		scale <<= 10
		unit++
	}
	return Decimal(float64(v)/float64(scale), decimals) + " " + binaryUnits[unit]
}

// Decimal rounds a number to the given number of decimals and drops zeros at the end.
func Decimal(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Fraction formats thousandths of a device as a decimal number: "0.25".
func Fraction(milli int64) string { return Decimal(float64(milli)/1000, 3) }

// Memory formats memory for people, with at most one decimal: "38.5 GiB".
func Memory(b cluster.Bytes) string { return bytesText(int64(b), 1) }

// Exact formats memory as in manifests, without rounding: "80Gi", "23028Mi".
func Exact(b cluster.Bytes) string {
	v, unit := int64(b), 0
	for v != 0 && v%1024 == 0 && unit < 4 {
		v >>= 10
		unit++
	}
	return strconv.FormatInt(v, 10) + []string{"", "Ki", "Mi", "Gi", "Ti"}[unit]
}

// Rounded shortens the result of Exact for people: if it is at least 2^20 bytes or KiB,
// it is rounded to tenths of GiB. Any other text is returned unchanged.
func Rounded(memory string) string {
	n, err := strconv.ParseInt(strings.TrimSuffix(memory, "Ki"), 10, 64)
	if err != nil || n < 1<<20 {
		return memory
	}
	if strings.HasSuffix(memory, "Ki") {
		n <<= 10
	}
	return strconv.FormatFloat(float64(n)/(1<<30), 'f', 1, 64) + "Gi"
}

// Of formats a quantity with its unit. Memory has at most the given number of decimals.
// The result is "" for a quantity without a unit.
func Of(q engine.Quantity, decimals int) string {
	switch q.Unit {
	case engine.Count:
		return strconv.FormatInt(q.Value, 10)
	case engine.Bytes:
		return bytesText(q.Value, decimals)
	case engine.Cores:
		if q.Value%1000 != 0 {
			return strconv.FormatInt(q.Value, 10) + "m cores"
		}
		return english.Count(q.Value/1000, "core")
	case engine.Devices:
		if q.Value%1000 != 0 {
			return Fraction(q.Value) + " devices"
		}
		return english.Count(q.Value/1000, "device")
	}
	return ""
}

// Pair formats two quantities with as few decimals as possible, but so many that
// different amounts have different texts. Amounts of memory that are compared are in GiB
// rather than in TiB, of which a tenth is more than a device has.
func Pair(a, b engine.Quantity) (string, string) {
	if a.Unit == engine.Bytes && b.Unit == engine.Bytes {
		x, y := MemoryPair(cluster.Bytes(a.Value), cluster.Bytes(b.Value))
		return x, y
	}
	return Of(a, 1), Of(b, 1)
}

// MemoryPair is Pair for two amounts of memory.
func MemoryPair(a, b cluster.Bytes) (string, string) {
	most := len(binaryUnits) - 1
	if min(a, b) < 10<<40 {
		most = gibUnit
	}
	for decimals := 1; decimals < 6; decimals++ {
		x, y := bytesUpTo(int64(a), decimals, most), bytesUpTo(int64(b), decimals, most)
		if x != y || a == b {
			return x, y
		}
	}
	return strconv.FormatInt(int64(a), 10) + " B", strconv.FormatInt(int64(b), 10) + " B"
}

// Compact formats a quantity as in JSON: "38GiB", "2 devices", "500m cores". Memory is
// rounded to thousandths of its unit.
func Compact(q engine.Quantity) string {
	s := Of(q, 3)
	if q.Unit == engine.Bytes {
		s = strings.Replace(s, " ", "", 1)
	}
	return s
}

// Resource formats an amount of a resource with its name: "16 cores", "64 GiB of
// memory", "8 devices". Cores and devices are given in thousandths.
func Resource(name string, v int64) string {
	_, product := cluster.SplitProduct(name)
	switch {
	case product != "":
		return Of(engine.Quantity{Value: v, Unit: engine.Devices}, 1) + " of " + product
	case name == cluster.CPU:
		return Of(engine.Quantity{Value: v, Unit: engine.Cores}, 1)
	case name == cluster.Memory:
		return bytesText(v, 1) + " of memory"
	case IsDevice(name):
		return Of(engine.Quantity{Value: v, Unit: engine.Devices}, 1)
	}
	return strconv.FormatInt(v, 10) + " " + name
}

// IsDevice reports whether the resource is devices, which queues count in thousandths. It
// decides by the name alone: a node may count devices under other names too.
func IsDevice(name string) bool {
	return name == cluster.DefaultDeviceResource || strings.HasPrefix(name, cluster.PartitionResource) ||
		strings.HasSuffix(name, "/gpu") || strings.HasSuffix(name, "/gpu.shared") || strings.HasSuffix(name, "/npu")
}

// Amount formats an amount of a resource without the name of the resource: rounded for
// people or, if manifest is true, exactly as in manifests. Cores and devices are given
// in thousandths. device must be set if the resource is devices; a resource that names a
// product always is. The amount may be cluster.Unlimited.
func Amount(name string, v int64, device, manifest bool) string {
	_, product := cluster.SplitProduct(name)
	switch {
	case v == cluster.Unlimited:
		return "unlimited"
	case device || product != "" || name == cluster.CPU:
		return Fraction(v)
	case name == cluster.Memory && manifest:
		return Exact(cluster.Bytes(v))
	case name == cluster.Memory:
		return bytesText(v, 1)
	}
	return strconv.FormatInt(v, 10)
}
