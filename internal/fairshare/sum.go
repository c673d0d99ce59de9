package fairshare

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/berth-project/berth/cluster"
)

// sum is a 128-bit sum of amounts times factors in units of 2⁻⁶³. It saturates.
type sum struct{ high, low uint64 }

func (s sum) plus(o sum) sum {
	low, carry := bits.Add64(s.low, o.low, 0)
	high, carry := bits.Add64(s.high, o.high, carry)
	if carry > 0 {
		return sum{math.MaxUint64, math.MaxUint64}
	}
	return sum{high, low}
}

func (s sum) less(o sum) bool {
	return cmp.Or(cmp.Compare(s.high, o.high), cmp.Compare(s.low, o.low)) < 0
}

func times(amount int64, part uint64) sum {
	high, low := bits.Mul64(uint64(max(0, amount)), part)
	return sum{high, low}
}

// of returns unit × s ÷ all. s must not be larger than all, and all must be above 0.
func (s sum) of(all sum, unit int64) int64 {
	if n := bits.Len64(all.high); n > 0 {
		s.low, all.low = s.low>>n|s.high<<(64-n), all.low>>n|all.high<<(64-n)
	}
	return cluster.MulDiv(int64(s.low>>1), unit, int64(max(1, all.low>>1)))
}
