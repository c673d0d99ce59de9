package fairshare

import "github.com/berth-project/berth/cluster"

// wakes is how often, in a half-life, sessions are asked for while shares move.
const wakes = 64

// moves reports whether time alone still changes shares: where past use counts, until
// all that queues hold has been held for so long that nothing before it counts.
func (k *kept) moves() bool {
	if !k.decay.counts() {
		return false
	}
	for _, d := range k.divided { // in any order: one that moves is enough
		then := make([]sum, len(d.siblings))
		claims := make([]Claim, len(d.siblings))
		for i, q := range d.siblings {
			then[i], claims[i] = q.lasting(d.resource), q.claim(q.parts[d.resource])
		}
		total := k.total(d)
		pasts := k.decay.weigh(total, claims, then)
		for i, q := range d.siblings {
			if q.weighs(d.resource, q.parts[d.resource].Past) != q.weighs(d.resource, pasts[i]) {
				return true
			}
		}
		for i, part := range Divide(total, claims) {
			if d.siblings[i].parts[d.resource].Share() != part.Share() {
				return true
			}
		}
	}
	return false
}

// weighs is the queue's weight for the resource with such a past, in thousandths.
func (q *Queue) weighs(resource string, past *Past) int64 {
	if past == nil {
		return cluster.MulDiv(q.WeightOf(resource), 1000, 1)
	}
	return past.Weight
}

// lasting is what the queue will have used of the resource once it has held for ever
// what it holds now. It is what recall comes to.
func (q *Queue) lasting(resource string) sum {
	if len(q.Children) == 0 || len(q.Queue.Past) > 0 {
		return times(q.Used.Of(resource), one)
	}
	var all sum
	for _, c := range q.Children {
		all = all.plus(c.lasting(resource))
	}
	return all
}
