package fairshare

import "github.com/berth-project/berth/cluster"

// Moving reports whether shares still change by time alone. If past use counts, that is so
// until queues have held what they hold for so long that earlier use no longer counts.
func (k *Keeper) Moving() bool {
	if !k.tree.decay.counts() {
		return false
	}
	for _, d := range k.divisions { // the order does not matter: one division is enough
		then := make([]sum, len(d.siblings))
		entitlements := make([]entitlement, len(d.siblings))
		for i, q := range d.siblings {
			then[i], entitlements[i] = q.limitOfUse(d.resource), q.entitlement(q.all[d.resource])
		}
		total := k.totalOf(d)
		pasts := k.tree.decay.weigh(total, entitlements, then)
		for i, q := range d.siblings {
			if q.weightWith(d.resource, q.all[d.resource].Past) != q.weightWith(d.resource, pasts[i]) {
				return true
			}
		}
		for i, part := range allot(total, entitlements) {
			if d.siblings[i].all[d.resource].Share() != part.Share() {
				return true
			}
		}
	}
	return false
}

// weightWith returns the queue's weight for the resource with the effect of its past use, in thousandths.
func (q *Queue) weightWith(resource string, past *Past) int64 {
	if past == nil {
		return cluster.MulDiv(q.WeightOf(resource), 1000, 1)
	}
	return past.Weight
}

// limitOfUse returns the past use that the queue approaches if it holds forever what it holds now.
func (q *Queue) limitOfUse(resource string) sum {
	if len(q.Children) == 0 || len(q.Queue.Past) > 0 {
		return times(q.Used.Of(resource), one)
	}
	var all sum
	for _, c := range q.Children {
		all = all.plus(c.limitOfUse(resource))
	}
	return all
}
