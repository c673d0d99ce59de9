package manifest

import "math"

// maxTotal bounds the sum of one resource over all objects.
const maxTotal = 1 << 62

// maxDevicesInAll bounds everything that is read, at some hundred bytes each. Tests lower it.
var maxDevicesInAll = 4_000_000

// totals adds up what is asked or offered over a whole bundle, so that no sum
// the books ever make can overflow.
type totals map[string]int64

// add books count times the amount and reports whether the total still counts.
func (t totals) add(name string, value, count int64) bool {
	if value <= 0 || count <= 0 {
		return true
	}
	if value > math.MaxInt64/count || value*count > maxTotal-t[name] {
		return false
	}
	t[name] += value * count
	return true
}
