package whatif

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// bound is a limit of a queue that applies to the job, or a quota that the job must not
// exceed because it is not preemptible.
type bound struct {
	queue  string
	amount cluster.Amount
	quota  bool
}

// bounds are all that apply to the job, those of its own queue first.
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

// used is how much of the bound is used: for a quota, by firm jobs only.
func (b *bound) used(s *cluster.State) int64 {
	q := s.Queue(b.queue)
	if b.quota {
		return q.UsedByFirm.Of(b.amount.Name)
	}
	return q.Used.Of(b.amount.Name)
}

// raisedTo is the change that sets the bound to v. A v below 0 removes the bound.
func (b bound) raisedTo(v int64) *change {
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
				// State counts the use of a product only if a queue names the product. The
				// weight names it and changes nothing else, so that the use is known and
				// says how far the bound must be raised.
				q.OverQuotaWeight = q.OverQuotaWeight.With(b.amount.Name, q.WeightOf(b.amount.Name))
			}
		}
		return s.Apply(cluster.QueuePut{Queue: q})
	}}
}

// raiseBounds removes one bound after another. If that helps, it raises the bound to what
// the queue used without it, which is the least that is enough.
func (c *promoter) raiseBounds() {
	for _, b := range c.workload.bounds() {
		if c.lab.spent() {
			return
		}
		lifted := b.raisedTo(-1)
		used := int64(0)
		v := c.lab.tryAnd(func(s *cluster.State) { used = b.used(s) }, lifted)
		if !v.fits {
			if c.workload.attempt.Before != nil { // else no bound kept the job from being placed
				c.found.addFailure(lifted, v)
			}
			continue
		}
		if used > b.amount.Value {
			if exact := b.raisedTo(used); c.lab.try(exact).fits {
				lifted = exact
			}
		}
		c.found.addHelp(lifted)
	}
}
