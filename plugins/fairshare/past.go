package fairshare

import (
	"cmp"
	"math"
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

// Past is what a queue's past did to its weight for one resource.
type Past struct {
	// Share is the queue's past use, in thousandths of what all who compete for
	// it used, or of what there is, whichever is more.
	Share int64
	// Weight is what the queue's weight has become, in thousandths. All who
	// compete weigh together what they did.
	Weight int64
}

// sum adds up amounts times parts of 2⁶³. What is too large to count is as much as can be counted.
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

// of is unit × s ÷ all, for s no larger than all, which is above 0.
func (s sum) of(all sum, unit int64) int64 {
	if n := bits.Len64(all.high); n > 0 {
		s.low, all.low = s.low>>n|s.high<<(64-n), all.low>>n|all.high<<(64-n)
	}
	return cluster.MulDiv(int64(s.low>>1), unit, int64(max(1, all.low>>1)))
}

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

// used is what the queue used, by resource. An amount that was held from one
// time to another counts with the integral of 2^(-age/halfLife) over that time.
// Whoever holds so much for ever has an integral of halfLife ÷ ln 2; parts of
// that are what the ends differ by, and what is counted here. What is not past
// yet does not count.
func (d *Decay) used(past []cluster.Usage, out map[string]sum, ages powers) {
	for i := range past {
		u := &past[i]
		to := min(u.To, d.Now)
		if u.From >= to {
			continue
		}
		late, early := ages.of(d, d.Now-to), ages.of(d, d.Now-u.From)
		if early >= late {
			continue // too short, or too long ago, to tell
		}
		for _, a := range u.Resources {
			out[a.Name] = out[a.Name].plus(times(a.Value, late-early))
		}
	}
}

// powers are what halved gives, by age: intervals of many queues begin and end at
// the same times, those of reports and of sessions.
type powers map[int64]uint64

func (p powers) of(d *Decay, age int64) uint64 {
	power, known := p[age]
	if !known {
		power = d.halved(age)
		p[age] = power
	}
	return power
}

// recall works out what the queue used, and all below it. A queue that reports
// nothing of its past has that of the queues below it together.
func (d *Decay) recall(s *cluster.State, q *Queue, ages powers) {
	if q.past == nil {
		q.past = map[string]sum{}
	}
	clear(q.past)
	d.used(q.Queue.Past, q.past, ages)
	if u, held := s.Held(q.Queue); held {
		d.used([]cluster.Usage{u}, q.past, ages)
	}
	for _, c := range q.Children {
		d.recall(s, c, ages)
		if len(q.Queue.Past) > 0 {
			continue
		}
		for name, s := range c.past {
			q.past[name] = q.past[name].plus(s)
		}
	}
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
	for _, i := range class {
		if !competes(i) {
			continue
		}
		w := cluster.MulDiv(weight(&claims[i]), unit, weights)
		u := used[i].of(all, unit)
		claims[i].Weight = max(1, w/100, w+d.Weight*(w-u)/1000)
		changed += claims[i].Weight
		out[i] = &Past{Share: (used[i].of(all, 2000) + 1) / 2}
	}
	for _, i := range class {
		if out[i] != nil {
			out[i].Weight = (cluster.MulDiv(claims[i].Weight, 2000*weights, changed) + 1) / 2
		}
	}
}
