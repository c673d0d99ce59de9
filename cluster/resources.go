package cluster

import (
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Bytes counts memory.
type Bytes int64

// Milli counts thousandths: of a core, or of a device.
type Milli int64

// Whole is one device, or one core, in thousandths.
const Whole Milli = 1000

// Names of the resources that every machine has.
const (
	CPU    = "cpu"    // in thousandths of a core
	Memory = "memory" // in bytes
)

// DefaultDeviceResource is the resource name devices are counted under unless a node says otherwise.
const DefaultDeviceResource = "nvidia.com/gpu"

// PartitionResource is what the resource name of a MIG profile begins with.
const PartitionResource = "nvidia.com/mig-"

// Amount is so much of one resource: thousandths for cpu and devices, bytes for
// memory, plain units for everything else.
type Amount struct {
	Name  string
	Value int64
}

// Resources is a vector over resource names, sorted by name, without duplicates.
type Resources []Amount

// Of returns the amount of the named resource, 0 when it is absent.
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

// AddOverflow adds two amounts and says whether the sum still counts.
func AddOverflow(a, b int64) (int64, bool) {
	sum := a + b
	if (b > 0 && sum < a) || (b < 0 && sum > a) {
		return 0, false
	}
	return sum, true
}

// MulDiv returns a × b ÷ c, rounded down, without overflow in between. All three
// are at least 0 and c is above 0; a result too large for int64 comes back as
// the largest int64.
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
