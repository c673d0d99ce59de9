package fairshare

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/fairshare"
)

// ratio is what a queue holds divided by its share (held ÷ share), in the resource for which
// that is highest. A queue that holds something without a share is above all queues with a
// share; see compare. total is what the cluster has of the resource.
type ratio struct{ held, share, total int64 }

// ratioWith returns the ratio of the queue if it holds more in addition.
func ratioWith(t *fairshare.Tree, q *fairshare.Queue, more cluster.Resources) ratio {
	return ratioOf(t, q, q.Used, more)
}

// ratioOf returns the ratio of the queue if it holds the sum of held and more.
func ratioOf(t *fairshare.Tree, q *fairshare.Queue, held, more cluster.Resources) ratio {
	top := ratio{total: 1}
	for i := range q.Shares {
		sh := &q.Shares[i]
		r := ratio{held.Of(sh.Resource) + more.Of(sh.Resource), sh.Share(), max(1, t.Total.Of(sh.Resource))}
		if r.held > 0 && r.compare(top) > 0 {
			top = r
		}
	}
	return top
}

// ratioWithIdle returns the ratio of the queue if it gets all idle resources that it requests.
func ratioWithIdle(t *fairshare.Tree, q *fairshare.Queue, idle cluster.Resources) ratio {
	top := ratio{total: 1}
	for i := range q.Shares {
		sh := &q.Shares[i]
		held := min(q.Used.Of(sh.Resource)+idle.Of(sh.Resource), max(q.Used.Of(sh.Resource), sh.WithinLimit()))
		r := ratio{held, sh.Share(), max(1, t.Total.Of(sh.Resource))}
		if r.held > 0 && r.compare(top) > 0 {
			top = r
		}
	}
	return top
}

// idleOf returns what no queue holds.
func idleOf(t *fairshare.Tree) cluster.Resources {
	out := slices.Clone(t.Total)
	for i := range out {
		for _, q := range t.Roots {
			out[i].Value -= q.Used.Of(out[i].Name)
		}
		out[i].Value = max(0, out[i].Value)
	}
	return out
}

// heldWithinShares returns what leaves hold within their shares; see balance.
func heldWithinShares(t *fairshare.Tree) int64 {
	sum := int64(0)
	for _, q := range t.BySlot {
		for i := range q.Shares {
			if sh := &q.Shares[i]; q.Leaf() {
				sum += cluster.MulDiv(min(q.Used.Of(sh.Resource), sh.Share()), 1_000_000, max(1, t.Total.Of(sh.Resource)))
			}
		}
	}
	return sum
}

// compare orders ratios. A queue without a share that holds something is above all queues
// with a share. Of two such queues, the one that holds more of the total is higher.
func (r ratio) compare(o ratio) int {
	above := func(r ratio) bool { return r.share <= 0 && r.held > 0 }
	switch x, y := above(r), above(o); {
	case x && y:
		return fairshare.CompareProducts(r.held, o.total, o.held, r.total)
	case x:
		return 1
	case y:
		return -1
	}
	return fairshare.CompareProducts(r.held, max(1, o.share), o.held, max(1, r.share))
}

// balance is how much is held within shares, and the ratios of the siblings at the levels of
// a branch. Placing tasks in idle room never lowers the former, and if the former
// stays the same, never raises the latter.
type balance struct {
	within int64     // what leaves hold within their shares, in millionths of the total, summed over resources
	levels [][]ratio // from the top down, each with the highest ratio first
	lower  []bool    // whether the level must become lower; otherwise it must not become higher
}

// Below reports whether this balance is more even than the other one.
func (b *balance) Below(other engine.Balance) bool {
	o, ok := other.(*balance)
	if !ok || len(o.levels) != len(b.levels) {
		return false
	}
	if b.within != o.within {
		return b.within > o.within
	}
	for i := range b.levels {
		c := slices.CompareFunc(b.levels[i], o.levels[i], ratio.compare)
		if c > 0 || c == 0 && b.lower[i] {
			return false
		}
	}
	return true
}
