package fairshare

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// entitlement is the entitlement of one queue to a resource that it divides with its siblings:
// its quota, its limit and its request, and what decides between siblings.
type entitlement struct {
	Name     string
	Tier     cluster.Tier
	Priority int32
	Created  int64
	Weight   int64 // for what is left after quotas, from 0 to 2³¹; with 0 it gets nothing beyond its quota
	Quota    int64 // cluster.Unlimited: as much as there is
	Limit    int64 // below 0: none
	Request  int64

	ageRank int // rank by age and name among its siblings, from 1; 0: not known
}

// Allotment is what an entitlement gets, and why it gets no more.
type Allotment struct {
	Quota     int64 // within its quota
	OverQuota int64 // of what is left after quotas
	Stop      Stop
}

// Share returns the whole amount.
func (p Allotment) Share() int64 { return p.Quota + p.OverQuota }

// Stop is the reason why a queue's share is not larger. Stops are part of the JSON output.
type Stop string

// The stops.
const (
	Satisfied Stop = "Satisfied" // the queue has all that it requests
	AtLimit   Stop = "AtLimit"   // the queue has reached its limit
	AtQuota   Stop = "AtQuota"   // the weight of the queue, or of queues below it, is 0, so that they get nothing beyond their quotas
	NoneLeft  Stop = "NoneLeft"  // nothing is left to divide
)

// most returns the most that can be taken.
func (c *entitlement) most() int64 {
	most := c.Request
	if c.Limit >= 0 {
		most = min(most, c.Limit)
	}
	if c.Weight == 0 {
		most = min(most, c.Quota)
	}
	return max(0, most)
}

// stop returns why no more than the share is given.
func (c *entitlement) stop(share int64) Stop {
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

// allot divides the total and returns what each entitlement gets, in the same order. The
// result does not depend on the order of the entitlements.
func allot(total int64, entitlements []entitlement) []Allotment {
	out, _ := allotWith(total, entitlements, make([]basis, len(entitlements)))
	return out
}

// allotWith is allot that also records what each result depends on. The slack is -1 if some
// entitlement did not get the most that it can take. Otherwise the slack is what is left of
// the total; it is 0 if all got the most that they can take and nothing is left.
func allotWith(total int64, entitlements []entitlement, on []basis) (out []Allotment, slack int64) {
	out = make([]Allotment, len(entitlements))
	left := allotOverQuota(allotQuotas(max(0, total), entitlements, out), entitlements, out, on)
	for i := range entitlements {
		if out[i].Stop = entitlements[i].stop(out[i].Share()); out[i].Stop == NoneLeft {
			left = -1
		}
	}
	return out, left
}

// allotQuotas gives each entitlement what it requests within its quota, the strongest tier
// first. If a tier requests more than is left, its entitlements get what is left in
// proportion to what they request within their quotas, and weaker tiers get nothing. It returns what is left.
func allotQuotas(total int64, entitlements []entitlement, out []Allotment) int64 {
	left := total
	tiers := classesOf(entitlements, func(i, j int) int { return cmp.Compare(entitlements[i].Tier.Rank(), entitlements[j].Tier.Rank()) })
	for _, tier := range tiers {
		want := make([]int64, len(tier))
		rest, short := left, false
		for k, i := range tier {
			quota := entitlements[i].Quota
			if quota == cluster.Unlimited { // otherwise a larger request would get a larger part
				quota = total
			}
			want[k] = max(0, min(quota, entitlements[i].most()))
			if short = short || want[k] > rest; !short { // the sum might overflow
				rest -= want[k]
			}
		}
		if short {
			want = proportional(left, want, func(k, l int) int { return compareAge(&entitlements[tier[k]], &entitlements[tier[l]]) })
			rest = 0
		}
		for k, i := range tier {
			out[i].Quota = want[k]
		}
		left = rest
	}
	return left
}

// allotOverQuota divides what is left after quotas: by priority, the highest first, and by weight
// among the entitlements of one priority that can take more. What no entitlement can take is
// left.
func allotOverQuota(left int64, entitlements []entitlement, out []Allotment, on []basis) int64 {
	classes := classesOf(entitlements, func(i, j int) int { return cmp.Compare(entitlements[j].Priority, entitlements[i].Priority) })
	for _, class := range classes {
		for _, i := range class {
			on[i].dry = left == 0
		}
		left = divideByWeight(left, class, entitlements, out, on)
	}
	return left
}

// divideByWeight divides the amount by weight. Dividing it repeatedly, with what satisfied
// entitlements do not take divided again among the others, gives the same result as
// satisfying the entitlements in the order of what they can take for their weight.
func divideByWeight(left int64, class []int, entitlements []entitlement, out []Allotment, on []basis) int64 {
	open := make([]candidate, 0, len(class))
	all := int64(0)
	for _, i := range class {
		if room := entitlements[i].most() - out[i].Quota; room != 0 {
			open = append(open, candidate{i, room, weight(&entitlements[i])})
			all += weight(&entitlements[i])
		}
	}
	slices.SortFunc(open, func(a, b candidate) int { return CompareProducts(a.room, b.weight, b.room, a.weight) })
	for k, o := range open {
		if CompareProducts(o.room, all, left, o.weight) > 0 {
			rest := open[k:] // none of these can be satisfied
			weights := make([]int64, len(rest))
			for n := range rest {
				weights[n] = rest[n].weight
			}
			parts := proportional(left, weights, func(n, m int) int { return compareAge(&entitlements[rest[n].index], &entitlements[rest[m].index]) })
			for n, j := range rest {
				out[j.index].OverQuota = parts[n]
				on[j.index].rest, on[j.index].left, on[j.index].all = true, left, all
			}
			return 0
		}
		out[o.index].OverQuota = o.room
		left -= o.room
		all -= o.weight
	}
	return left
}

// candidate is an entitlement that can take more than its quota.
type candidate struct {
	index        int
	room, weight int64
}

// weight returns the weight, bounded so that sums of weights do not overflow.
func weight(c *entitlement) int64 { return min(max(1, c.Weight), 1<<31) }

// proportional divides the amount by weight, rounded down. What rounding leaves is given in
// units of 1 to the largest fractions; the order tie decides between equal fractions.
func proportional(amount int64, weights []int64, tie func(i, j int) int) []int64 {
	weights = slices.Clone(weights)
	var high, low uint64
	for _, w := range weights {
		var carry uint64
		low, carry = bits.Add64(low, uint64(w), 0)
		high += carry
	}
	if shift := bits.Len64(high); shift > 0 || low > math.MaxInt64 { // the sum is too large: scale the weights down
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
		q, rem := bits.Div64(h, l, low) // w ≤ low, so the quotient is at most the amount
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
	for _, i := range order[:left] { // left is less than the number of fractions
		out[i]++
	}
	return out
}

// compareAge orders entitlements by age, then by name.
func compareAge(a, b *entitlement) int {
	if a.ageRank > 0 && b.ageRank > 0 {
		return cmp.Compare(a.ageRank, b.ageRank)
	}
	return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Name, b.Name))
}

// classesOf groups the indexes of the entitlements into classes of equals, in order.
func classesOf(entitlements []entitlement, compare func(i, j int) int) [][]int {
	all := make([]int, len(entitlements))
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

// CompareProducts compares a × b with c × d. All must be at least 0.
func CompareProducts(a, b, c, d int64) int {
	h1, l1 := bits.Mul64(uint64(a), uint64(b))
	h2, l2 := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(h1, h2), cmp.Compare(l1, l2))
}

// Add adds two amounts of at least 0. The result is at most the largest int64.
func Add(a, b int64) int64 {
	if sum, ok := cluster.AddOverflow(a, b); ok {
		return sum
	}
	return math.MaxInt64
}
