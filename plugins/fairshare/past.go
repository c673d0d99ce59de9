package fairshare

import (
	"cmp"
	"math/bits"

	"github.com/berth-project/berth/cluster"
)

// Decay is how past use counts. The zero Decay lets it not count at all.
type Decay struct {
	HalfLife int64 // in nanoseconds
	Weight   int64 // how strongly, in thousandths
	Now      int64 // what age is counted from
}

func (d *Decay) counts() bool { return d.HalfLife > 0 && d.Weight > 0 }

// one is the whole of what halved gives parts of.
const one = 1 << 63

// halved is 2 to the power of -age/halfLife, in parts of 2⁶³. It is worked out
// in whole numbers, because machines differ in the last digit of a float: the
// halvings that are complete are a shift, the rest is e^-y with y below ln 2, as
// 1 - y(1 - y/2(1 - y/3(…))). Twenty terms are more than 63 bits can tell apart.
func (d *Decay) halved(age int64) uint64 {
	const ln2 = 0xB17217F7D1CF79AB // in parts of 2⁶⁴
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

// Past is what a queue's past did to its weight for one resource.
type Past struct {
	// Share is the queue's past use, in thousandths of what all that compete for
	// it used, or of what there is, whichever is more.
	Share int64
	// Weight is what the queue's weight has become, in thousandths. All that
	// compete weigh together what they did.
	Weight int64
}

// weigh changes the weights of those who compete for what quotas leave of the
// total: w becomes w + Weight × (w - u), but no less than a hundredth of w, where
// w and u are parts of the whole: of the weights, and of what was used. It
// returns what it did to each, nil where nothing.
func (d *Decay) weigh(total int64, claims []Claim, used []sum) []*Past {
	out := make([]*Past, len(claims))
	classes := indexes(claims, func(i, j int) int { return cmp.Compare(claims[j].Priority, claims[i].Priority) })
	for _, class := range classes {
		d.weighClass(times(total, one), class, claims, used, out)
	}
	return out
}

func (d *Decay) weighClass(whole sum, class []int, claims []Claim, used []sum, out []*Past) {
	const unit = 1 << 27 // eleven of these are still a weight
	var all sum
	weights, changed := int64(0), int64(0)
	competes := func(i int) bool { return claims[i].most() > max(0, claims[i].Quota) }
	for _, i := range class {
		if competes(i) {
			all = all.plus(used[i])
			weights += weight(&claims[i])
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
		w := cluster.MulDiv(weight(&claims[i]), unit, weights)
		u := used[i].of(all, unit)
		claims[i].Weight = max(1, w/100, w+d.Weight*(w-u)/1000)
		changed += claims[i].Weight
		out[i] = &pasts[n]
		out[i].Share = (used[i].of(all, 2000) + 1) / 2
	}
	for _, i := range class {
		if out[i] != nil {
			out[i].Weight = (cluster.MulDiv(claims[i].Weight, 2000*weights, changed) + 1) / 2
		}
	}
}
