package fairshare

import "github.com/berth-project/berth/cluster"

// wakes is how many sessions are requested in a half-life while shares change with time.
const wakes = 64

// moves reports whether shares still change by time alone. If past use counts, that is so
// until queues have held what they hold for so long that earlier use no longer counts.
func (k *kept) moves() bool {
	if !k.decay.counts() {
		return false
	}
	for _, d := range k.divided { // the order does not matter: one division is enough
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

// weighs returns the queue's weight for the resource with the effect of its past use, in thousandths.
func (q *Queue) weighs(resource string, past *Past) int64 {
	if past == nil {
		return cluster.MulDiv(q.WeightOf(resource), 1000, 1)
	}
	return past.Weight
}

// lasting returns the past use that the queue approaches if it holds forever what it holds now.
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
