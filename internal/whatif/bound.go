package whatif

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// bound is a limit that the job is under, or a quota that it must stay inside
// because it is not preemptible, and the queue that has it.
type bound struct {
	queue  string
	amount cluster.Amount
	quota  bool
}

// bounds are all that the job is under, its own queue's first.
func (w *workload) bounds() []bound {
	var out []bound
	q := w.state.Queue(w.job().Queue)
	for ; q != nil; q = w.state.View().Parent(q) {
		for _, a := range q.Limits {
			out = append(out, bound{q.Name, a, false})
		}
		for _, a := range q.Quota {
			if !w.job().Preemptible && a.Value != cluster.Unlimited {
				out = append(out, bound{q.Name, a, true})
			}
		}
	}
	return out
}

// used is what counts against the bound.
func (b *bound) used(s *cluster.State) int64 {
	q := s.Queue(b.queue)
	if b.quota {
		return q.Firm.Of(b.amount.Name)
	}
	return q.Used.Of(b.amount.Name)
}

// to sets the bound; below 0 takes it away.
func (b bound) to(v int64) *change {
	what := "limit"
	if b.quota {
		what = "quota"
	}
	text := fmt.Sprintf("without queue %s's %s of %s", b.queue, what, quantity.Resource(b.amount.Name, b.amount.Value))
	if v >= 0 {
		text = fmt.Sprintf("with queue %s's %s raised from %s to %s", b.queue, what, quantity.Resource(b.amount.Name, b.amount.Value), quantity.Resource(b.amount.Name, v))
	}
	return &change{wire.RaiseLimit, text, 25, func(s *cluster.State) error {
		q := *s.Queue(b.queue)
		list := &q.Limits
		if b.quota {
			list = &q.Quota
		}
		if v >= 0 {
			*list = list.With(b.amount.Name, v)
		} else {
			*list = slices.DeleteFunc(slices.Clone(*list), func(a cluster.Amount) bool { return a.Name == b.amount.Name })
			if _, product := cluster.SplitProduct(b.amount.Name); product != "" {
				// A weight that changes nothing keeps the product in the State: what
				// is used of it says how far the bound had to be raised.
				q.OverQuotaWeight = q.OverQuotaWeight.With(b.amount.Name, q.WeightOf(b.amount.Name))
			}
		}
		return s.Apply(cluster.QueuePut{Queue: q})
	}}
}

// raise lifts what the job is bound by, one by one, and then finds out how far
// the bound had to be raised: to what the queue used without it.
func (c *claimer) raise() {
	for _, b := range c.workload.bounds() {
		if c.lab.spent() {
			return
		}
		lifted := b.to(-1)
		used := int64(0)
		v := c.lab.tryAnd(func(s *cluster.State) { used = b.used(s) }, lifted)
		if !v.fits {
			if c.workload.attempt.Before != nil { // a limit that was not in the way is of no interest
				c.found.no(lifted, v)
			}
			continue
		}
		if used > b.amount.Value {
			if exact := b.to(used); c.lab.try(exact).fits {
				lifted = exact
			}
		}
		c.found.yes(lifted)
	}
}
