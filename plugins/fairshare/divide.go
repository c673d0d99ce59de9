package fairshare

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Claim is what one of several siblings deserves, may have and asks for of one
// resource, and what decides between them.
type Claim struct {
	Name     string
	Tier     cluster.Tier
	Priority int32
	Created  int64
	Weight   int64 // of what is left over; from 0 to 2³¹. With 0 it gets nothing beyond its quota
	Quota    int64 // cluster.Unlimited: as much as there is
	Limit    int64 // below 0: none
	Request  int64

	seniority int // its place by age and name among its siblings, from 1; 0: not known
}

// Part is what a claim gets, and why it gets no more.
type Part struct {
	Quota     int64 // out of its quota
	OverQuota int64 // out of what the others left
	Stop      Stop
}

// Share is all that the claim gets.
func (p Part) Share() int64 { return p.Quota + p.OverQuota }

// Stop says why a share is no larger. Stops are API: they are in JSON.
type Stop string

// The stops.
const (
	Satisfied Stop = "Satisfied" // it has all it asks for
	AtLimit   Stop = "AtLimit"   // it may not have more
	AtQuota   Stop = "AtQuota"   // its weight is 0: it deserves nothing beyond its quota
	NoneLeft  Stop = "NoneLeft"  // nothing is left to divide
)

// most is what the claim can take at most.
func (c *Claim) most() int64 {
	most := c.Request
	if c.Limit >= 0 {
		most = min(most, c.Limit)
	}
	if c.Weight == 0 {
		most = min(most, c.Quota)
	}
	return max(0, most)
}

// stop is why the claim gets no more than the share.
func (c *Claim) stop(share int64) Stop {
	switch {
	case share >= max(0, c.Request):
		return Satisfied
	case c.Limit >= 0 && share >= c.Limit:
		return AtLimit
	case share >= c.most():
		return AtQuota
	}
	return NoneLeft
}

// Divide gives each claim its part of the total, in the claims' order. The parts
// depend on the claims alone, and not on the order they come in.
func Divide(total int64, claims []Claim) []Part {
	out, _ := divide(total, claims, make([]footing, len(claims)))
	return out
}

// divide also says what each part stands on, and what is left where all claims
// have what they can take; -1 where one has not.
func divide(total int64, claims []Claim, on []footing) (out []Part, slack int64) {
	out = make([]Part, len(claims))
	left := overQuota(deserved(max(0, total), claims, out), claims, out, on)
	for i := range claims {
		if out[i].Stop = claims[i].stop(out[i].Share()); out[i].Stop == NoneLeft {
			left = -1
		}
	}
	return out, left
}

// deserved gives each claim what it asks for within its quota, the strongest
// tier first. The tier in which it runs short shares what is left of the total
// in proportion; those below it get nothing. It returns what is left.
func deserved(total int64, claims []Claim, out []Part) int64 {
	left := total
	tiers := indexes(claims, func(i, j int) int { return cmp.Compare(claims[i].Tier.Rank(), claims[j].Tier.Rank()) })
	for _, tier := range tiers {
		want := make([]int64, len(tier))
		rest, short := left, false
		for k, i := range tier {
			quota := claims[i].Quota
			if quota == cluster.Unlimited { // otherwise larger requests would get larger parts
				quota = total
			}
			want[k] = max(0, min(quota, claims[i].most()))
			if short = short || want[k] > rest; !short { // a sum might be too large to count
				rest -= want[k]
			}
		}
		if short {
			want = proportional(left, want, func(k, l int) int { return elder(&claims[tier[k]], &claims[tier[l]]) })
			rest = 0
		}
		for k, i := range tier {
			out[i].Quota = want[k]
		}
		left = rest
	}
	return left
}

// overQuota divides what the quotas left: by priority, high first, and by weight
// among those of one priority who can still take some. What nobody may take stays idle.
func overQuota(left int64, claims []Claim, out []Part, on []footing) int64 {
	classes := indexes(claims, func(i, j int) int { return cmp.Compare(claims[j].Priority, claims[i].Priority) })
	for _, class := range classes {
		for _, i := range class {
			on[i].dry = left == 0
		}
		left = rounds(left, class, claims, out, on)
	}
	return left
}

// rounds fills claims by weight. Whoever needs least for its weight is satisfied
// first, and what it leaves is divided again among the others; that is what
// rounds come to, whatever their number.
func rounds(left int64, class []int, claims []Claim, out []Part, on []footing) int64 {
	open := make([]opening, 0, len(class))
	all := int64(0)
	for _, i := range class {
		if room := claims[i].most() - out[i].Quota; room != 0 {
			open = append(open, opening{i, room, weight(&claims[i])})
			all += weight(&claims[i])
		}
	}
	slices.SortFunc(open, func(a, b opening) int { return compareProducts(a.room, b.weight, b.room, a.weight) })
	for k, o := range open {
		if compareProducts(o.room, all, left, o.weight) > 0 {
			rest := open[k:] // none of them can be satisfied any more
			weights := make([]int64, len(rest))
			for n := range rest {
				weights[n] = rest[n].weight
			}
			parts := proportional(left, weights, func(n, m int) int { return elder(&claims[rest[n].claim], &claims[rest[m].claim]) })
			for n, j := range rest {
				out[j.claim].OverQuota = parts[n]
				on[j.claim].rest, on[j.claim].left, on[j.claim].all = true, left, all
			}
			return 0
		}
		out[o.claim].OverQuota = o.room
		left -= o.room
		all -= o.weight
	}
	return left
}

// opening is a claim that can take more than its quota.
type opening struct {
	claim        int
	room, weight int64
}

// weight is bounded so that sums of weights cannot overflow.
func weight(c *Claim) int64 { return min(max(1, c.Weight), 1<<31) }

// proportional splits the amount by weight: rounded down, and what that leaves
// goes by one to the largest fractions, then to whoever comes first by tie.
func proportional(amount int64, weights []int64, tie func(i, j int) int) []int64 {
	weights = slices.Clone(weights)
	var high, low uint64
	for _, w := range weights {
		var carry uint64
		low, carry = bits.Add64(low, uint64(w), 0)
		high += carry
	}
	if shift := bits.Len64(high); shift > 0 || low > math.MaxInt64 { // too large to count: scale down
		low = 0
		for i := range weights {
			weights[i] >>= shift + 1
			low += uint64(weights[i])
		}
	}
	out, fractions := make([]int64, len(weights)), make([]uint64, len(weights))
	if low == 0 {
		return out
	}
	left := amount
	for i, w := range weights {
		h, l := bits.Mul64(uint64(amount), uint64(w))
		q, rem := bits.Div64(h, l, low) // w ≤ low, so that the quotient is at most the amount
		out[i], fractions[i] = int64(q), rem
		left -= out[i]
	}
	if left == 0 {
		return out
	}
	order := make([]int, len(weights))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		if fractions[i] != fractions[j] {
			return cmp.Compare(fractions[j], fractions[i])
		}
		return tie(i, j)
	})
	for _, i := range order[:left] { // fewer than there are fractions
		out[i]++
	}
	return out
}

// elder puts the older claim first, then the one whose name comes first.
func elder(a, b *Claim) int {
	if a.seniority > 0 && b.seniority > 0 {
		return cmp.Compare(a.seniority, b.seniority)
	}
	return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Name, b.Name))
}

// indexes groups the claims' indexes into classes of equals, in order.
func indexes(claims []Claim, compare func(i, j int) int) [][]int {
	all := make([]int, len(claims))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, compare)
	var out [][]int
	begin := 0
	for n := range all {
		if n+1 == len(all) || compare(all[n], all[n+1]) != 0 {
			out = append(out, all[begin:n+1])
			begin = n + 1
		}
	}
	return out
}

// compareProducts compares a × b with c × d; all are at least 0.
func compareProducts(a, b, c, d int64) int {
	h1, l1 := bits.Mul64(uint64(a), uint64(b))
	h2, l2 := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(h1, h2), cmp.Compare(l1, l2))
}

// plus adds amounts of at least 0; what is too large to count is as much as can be counted.
func plus(a, b int64) int64 {
	if sum, ok := cluster.AddOverflow(a, b); ok {
		return sum
	}
	return math.MaxInt64
}
