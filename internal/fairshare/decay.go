package fairshare

import (
	"cmp"
	"math/bits"

	"github.com/berth-project/berth/cluster"
)

// Decay is how past use counts. With the zero Decay it does not count.
type Decay struct {
	HalfLife int64 // in nanoseconds
	Weight   int64 // how strongly past use counts, in thousandths
	Now      int64 // the time from which age is counted, in nanoseconds since 1970
}

func (d *Decay) counts() bool { return d.HalfLife > 0 && d.Weight > 0 }

// one is 1 in the unit of halved.
const one = 1 << 63

// halved returns 2 to the power of -age/halfLife, in units of 2⁻⁶³. It uses integers, because
// the last digits of floating-point results differ between machines. Complete halvings
// are a shift. The rest is e^-y with y below ln 2, computed as 1 - y(1 - y/2(1 - y/3(…))).
// Twenty terms are more than 63 bits can represent.
func (d *Decay) halved(age int64) uint64 {
	const ln2 = 0xB17217F7D1CF79AB // in units of 2⁻⁶⁴
	complete, rest := age/d.HalfLife, age%d.HalfLife
	if complete >= 63 {
		return 0
	}
	fraction, _ := bits.Div64(uint64(rest), 0, uint64(d.HalfLife))
	y, _ := bits.Mul64(fraction, ln2)
	power := uint64(one)
	for k := uint64(20); k > 0; k-- {
		product, _ := bits.Mul64(y, power)
		power = one - product/k
	}
	return power >> complete
}

// Past is the effect of a queue's past use on its weight for one resource.
type Past struct {
	// Share is the queue's past use, in thousandths of the past use of all queues that
	// compete with it, or of the total, whichever is more.
	Share int64
	// Weight is the queue's changed weight, in thousandths. The sum of the weights of all
	// queues that compete does not change.
	Weight int64
}

// weigh changes the weights of the entitlements that compete for what is left of the total
// after quotas, separately for each priority. An entitlement competes if it can take more than
// its quota. Let w be its weight as a fraction of the weights that compete, and u its past use
// as a fraction of the past use of all that compete, or of the total if that is more. Its
// weight becomes w + Weight × (w - u), with d.Weight as a factor, but at least w ÷ 100. It
// returns the effect on each entitlement. The effect is nil if the entitlement does not
// compete, or if no entitlement of its priority has past use.
func (d *Decay) weigh(total int64, entitlements []entitlement, used []sum) []*Past {
	out := make([]*Past, len(entitlements))
	classes := classesOf(entitlements, func(i, j int) int { return cmp.Compare(entitlements[j].Priority, entitlements[i].Priority) })
	for _, class := range classes {
		d.weighClass(times(total, one), class, entitlements, used, out)
	}
	return out
}

func (d *Decay) weighClass(whole sum, class []int, entitlements []entitlement, used []sum, out []*Past) {
	const unit = 1 << 27 // eleven times this is still a valid weight
	var all sum
	weights, changed := int64(0), int64(0)
	competes := func(i int) bool { return entitlements[i].most() > max(0, entitlements[i].Quota) }
	for _, i := range class {
		if competes(i) {
			all = all.plus(used[i])
			weights += weight(&entitlements[i])
		}
	}
	if all == (sum{}) {
		return
	}
	if all.less(whole) {
		all = whole
	}
	pasts := make([]Past, len(class))
	for n, i := range class {
		if !competes(i) {
			continue
		}
		w := cluster.MulDiv(weight(&entitlements[i]), unit, weights)
		u := used[i].of(all, unit)
		entitlements[i].Weight = max(1, w/100, w+d.Weight*(w-u)/1000)
		changed += entitlements[i].Weight
		out[i] = &pasts[n]
		out[i].Share = (used[i].of(all, 2000) + 1) / 2
	}
	for _, i := range class {
		if out[i] != nil {
			out[i].Weight = (cluster.MulDiv(entitlements[i].Weight, 2000*weights, changed) + 1) / 2
		}
	}
}
