package manifest

import "math"

// maxTotal is the largest sum of one resource over all objects.
const maxTotal = 1 << 62

// maxDevicesInAll is the largest number of devices of all nodes together. A device takes
// some hundred bytes of memory. Tests lower the limit.
var maxDevicesInAll = 4_000_000

// totals are the sums of what all objects request or offer, by resource. They are limited,
// so that no sum in State can overflow.
type totals map[string]int64

// add adds count times the value, and reports false if the sum would exceed maxTotal.
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
