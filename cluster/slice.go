package cluster

import (
	"strconv"
	"strings"
)

// A MIG slice is a device with a resource name of its own, such as nvidia.com/mig-1g.10gb,
// and it is a fraction of a GPU. A queue with terms for that resource, which means that its
// quota, limits or weights name it, is charged for the slice under that name and not as
// nvidia.com/gpu. Any other queue is also charged for the slice as its fraction of
// nvidia.com/gpu, so that a quota of one GPU is worth the same in slices as in a whole GPU.
// If any queue has terms for the product (see ProductResource), every queue that is charged
// for the slice is charged under that name too.

// FractionOf returns the fraction of a GPU that a slice of the profile is: its number of
// compute slices, divided by that of the product. It is rounded down, so that slices that
// fill a GPU do not count as more than one. Memory does not count: 1g.20gb is the same
// fraction as 1g.10gb. A profile that names no number of slices counts as a whole GPU.
func FractionOf(product, profile string) Milli {
	end := strings.IndexFunc(profile, func(r rune) bool { return r < '0' || r > '9' })
	if end < 1 || profile[end] != 'g' && profile[end] != 'c' { // 1g.10gb, and 1c.3g.20gb for a part of 3g.20gb
		return Whole
	}
	slices, err := strconv.Atoi(profile[:end])
	if err != nil || slices < 1 {
		return Whole
	}
	return Milli(min(int64(Whole), MulDiv(int64(slices), int64(Whole), int64(computeSlices(product)))))
}

// computeSlices returns into how many compute slices MIG divides a GPU of the product.
func computeSlices(product string) int {
	if strings.Contains(product, "A30") || strings.Contains(product, "RTX-PRO-6000") {
		return 4
	}
	return 7
}

// Names reports whether the queue has terms for the resource.
func (q *Queue) Names(resource string) bool {
	for _, list := range [...]Resources{q.Quota, q.Limits, q.OverQuotaWeight} {
		for i := range list {
			if list[i].Name == resource {
				return true
			}
		}
	}
	return false
}

// sameAccounts reports whether both queues have terms for the same MIG profiles.
func (q *Queue) sameAccounts(o *Queue) bool { return q.namesPartitionsOf(o) && o.namesPartitionsOf(q) }

// namesPartitionsOf reports whether the queue has terms for all MIG profiles that the
// other queue has terms for.
func (q *Queue) namesPartitionsOf(o *Queue) bool {
	for _, list := range [...]Resources{o.Quota, o.Limits, o.OverQuotaWeight} {
		for i := range list {
			if name := list[i].Name; strings.HasPrefix(name, PartitionResource) && !q.Names(name) {
				return false
			}
		}
	}
	return true
}

// Charge returns how much of the resource the queue is charged for a claim of milli
// thousandths of the device, in thousandths.
func (q *Queue) Charge(d *Device, milli Milli, resource string) int64 {
	switch {
	case d.Resource == resource || d.ProductResource == resource:
		return int64(milli)
	case d.Fraction > 0 && resource == DefaultDeviceResource && !q.Names(d.Resource):
		return d.ofGPU(milli)
	}
	return 0
}

// ofGPU returns which part of a GPU a claim of milli thousandths of a MIG slice is, in
// thousandths. A claim is never charged with 0.
func (d *Device) ofGPU(milli Milli) int64 {
	if milli == 0 {
		return 0
	}
	return max(1, MulDiv(int64(milli), int64(d.Fraction), int64(Whole)))
}

// ChargeOf returns how much of the resource the queue is charged for what the task holds.
func (q *Queue) ChargeOf(t *Task, resource string) int64 {
	v := t.Holds(resource)
	if t.Node == nil || resource != DefaultDeviceResource {
		return v
	}
	for _, c := range t.Claims {
		if d := &t.Node.Devices[c.Device]; d.Fraction > 0 && d.Resource != resource {
			v += q.Charge(d, c.Milli, resource)
		}
	}
	return v
}
