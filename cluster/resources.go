package cluster

import (
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Bytes is an amount of memory in bytes.
type Bytes int64

// Milli is an amount in thousandths of a core or of a device.
type Milli int64

// Whole is one device, or one core, in thousandths.
const Whole Milli = 1000

// The names of the resources that every node has.
const (
	CPU    = "cpu"    // in thousandths of a core
	Memory = "memory" // in bytes
)

// DefaultDeviceResource is the resource name of devices on a node without a
// DeviceResource of its own.
const DefaultDeviceResource = "nvidia.com/gpu"

// PartitionResource is the prefix of the resource names of MIG profiles.
const PartitionResource = "nvidia.com/mig-"

// Amount is an amount of one resource: in thousandths for cpu and devices, in bytes for
// memory, in units for everything else.
type Amount struct {
	Name  string
	Value int64
}

// Resources is a vector over resource names, sorted by name, without duplicates.
type Resources []Amount

// Of returns the amount of the named resource, or 0 if it is absent.
func (r Resources) Of(name string) int64 {
	for i := range r {
		if r[i].Name == name {
			return r[i].Value
		}
	}
	return 0
}

// With returns a copy in which the named resource has the given value.
func (r Resources) With(name string, value int64) Resources {
	out := slices.Clone(r)
	i, found := slices.BinarySearchFunc(out, name, func(x Amount, n string) int { return strings.Compare(x.Name, n) })
	if found {
		out[i].Value = value
		return out
	}
	return slices.Insert(out, i, Amount{name, value})
}

// AddOverflow returns the sum of two amounts and true, or 0 and false if the sum
// overflows.
func AddOverflow(a, b int64) (int64, bool) {
	sum := a + b
	if (b > 0 && sum < a) || (b < 0 && sum > a) {
		return 0, false
	}
	return sum, true
}

// MulDiv returns a × b ÷ c, rounded down. The product may exceed int64. a and b must be
// at least 0, and c must be above 0. If the result exceeds int64, MulDiv returns
// math.MaxInt64.
func MulDiv(a, b, c int64) int64 {
	if a|b < 1<<31 { // the product cannot overflow
		return a * b / c
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(q)
}

// MulDivUp is MulDiv rounded up.
func MulDivUp(a, b, c int64) int64 {
	q := MulDiv(a, b, c)
	if q == math.MaxInt64 {
		return q
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	qhi, qlo := bits.Mul64(uint64(q), uint64(c))
	if hi != qhi || lo != qlo {
		q++
	}
	return q
}

func sortAmounts(r Resources) {
	slices.SortFunc(r, func(a, b Amount) int { return strings.Compare(a.Name, b.Name) })
}
