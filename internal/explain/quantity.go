package explain

import (
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/numeral"
)

var binaryUnits = []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}

// bytesText spells memory for people: "38 GiB", with at most the given number of decimals.
func bytesText(v int64, decimals int) string {
	unit, scale := 0, int64(1)
	for (v/scale >= 1024 || v/scale <= -1024) && unit < len(binaryUnits)-1 {
		scale <<= 10
		unit++
	}
	return decimal(float64(v)/float64(scale), decimals) + " " + binaryUnits[unit]
}

// decimal rounds and drops zeros at the end.
func decimal(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Memory spells memory for people.
func Memory(b cluster.Bytes) string { return bytesText(int64(b), 1) }

// exact spells memory as manifests do, losing nothing: "80Gi", "23028Mi".
func exact(b cluster.Bytes) string {
	v, unit := int64(b), 0
	for v != 0 && v%1024 == 0 && unit < 4 {
		v >>= 10
		unit++
	}
	return strconv.FormatInt(v, 10) + []string{"", "Ki", "Mi", "Gi", "Ti"}[unit]
}

// Rounded shortens memory that was spelled exactly to tenths of GiB, if it is no
// whole number of MiB.
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

// quantity spells a number with its unit; "" where nothing was counted.
func quantity(q engine.Quantity, decimals int) string {
	switch q.Unit {
	case engine.Count:
		return strconv.FormatInt(q.Value, 10)
	case engine.Bytes:
		return bytesText(q.Value, decimals)
	case engine.Cores:
		if q.Value%1000 != 0 {
			return strconv.FormatInt(q.Value, 10) + "m cores"
		}
		return numeral.Count(q.Value/1000, "core")
	case engine.Devices:
		if q.Value%1000 != 0 {
			return decimal(float64(q.Value)/1000, 3) + " devices"
		}
		return numeral.Count(q.Value/1000, "device")
	}
	return ""
}

// pair spells two quantities with as many digits as it takes to tell them apart.
func pair(a, b engine.Quantity) (string, string) {
	for decimals := 1; decimals < 6; decimals++ {
		x, y := quantity(a, decimals), quantity(b, decimals)
		if x != y || a == b {
			return x, y
		}
	}
	return strconv.FormatInt(a.Value, 10) + " B", strconv.FormatInt(b.Value, 10) + " B"
}

// compact is how quantities look in JSON: "38GiB", "2 devices", "500m cores".
func compact(q engine.Quantity) string {
	s := quantity(q, 3)
	if q.Unit == engine.Bytes {
		s = strings.Replace(s, " ", "", 1)
	}
	return s
}

// resourceText spells so much of a resource: "16 cores", "64 GiB of memory", "8 devices".
func resourceText(name string, v int64) string {
	_, product := cluster.SplitProduct(name)
	switch {
	case product != "":
		return quantity(engine.Quantity{Value: v, Unit: engine.Devices}, 1) + " of " + product
	case name == cluster.CPU:
		return quantity(engine.Quantity{Value: v, Unit: engine.Cores}, 1)
	case name == cluster.Memory:
		return bytesText(v, 1) + " of memory"
	case isDevice(name):
		return quantity(engine.Quantity{Value: v, Unit: engine.Devices}, 1)
	}
	return strconv.FormatInt(v, 10) + " " + name
}

// isDevice reports whether a queue counts the resource in thousandths of a device.
func isDevice(name string) bool {
	return name == cluster.DefaultDeviceResource || strings.HasPrefix(name, cluster.PartitionResource) ||
		strings.HasSuffix(name, "/gpu") || strings.HasSuffix(name, "/gpu.shared") || strings.HasSuffix(name, "/npu")
}

// List joins names the way a sentence does, and counts those beyond the first few.
func List(names []string, most int) string {
	switch {
	case len(names) == 0:
		return ""
	case len(names) == 1:
		return names[0]
	case len(names) > most:
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Amount spells so much of a resource without naming it: for people, or as
// manifests do, losing nothing. Devices are counted in thousandths; what names
// a product is always devices. A quota may be unlimited.
func Amount(name string, v int64, device, manifest bool) string {
	_, product := cluster.SplitProduct(name)
	switch {
	case v == cluster.Unlimited:
		return "unlimited"
	case device || product != "" || name == cluster.CPU:
		return decimal(float64(v)/1000, 3)
	case name == cluster.Memory && manifest:
		return exact(cluster.Bytes(v))
	case name == cluster.Memory:
		return bytesText(v, 1)
	}
	return strconv.FormatInt(v, 10)
}
