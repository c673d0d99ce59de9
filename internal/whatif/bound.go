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
	quota  bool // it is a quota and not a limit
}

// bounds returns all bounds that apply to the job: those of its own queue first, then those
// of the queues above it.
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

// used returns how much of the bound is used. For a quota, only firm jobs count.
func (b *bound) used(s *cluster.State) int64 {
	q := s.Queue(b.queue)
	if b.quota {
		return q.UsedByFirm.Of(b.amount.Name)
	}
	return q.Used.Of(b.amount.Name)
}

// raisedTo returns the change that sets the bound to v, or removes it if v is negative.
func (b bound) raisedTo(v int64) *change {
	what := "limit"
	if b.quota {
		what = "quota"
	}
	text := fmt.Sprintf("without queue %s's %s of %s", b.queue, what, quantity.Resource(b.amount.Name, b.amount.Value))
	if v >= 0 {
		text = fmt.Sprintf("with queue %s's %s raised from %s to %s", b.queue, what, quantity.Resource(b.amount.Name, b.amount.Value), quantity.Resource(b.amount.Name, v))
	}
	return newChange(wire.RaiseLimit, text, 25, func(s *cluster.State) error {
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
				// The use without the bound is read to find out how far the bound must be
				// raised. State counts the use of a product only while some queue names the
				// product in its quota, limits or weights. This queue therefore names it in
				// a weight, which has the value that applies without it.
				q.OverQuotaWeight = q.OverQuotaWeight.With(b.amount.Name, q.WeightOf(b.amount.Name))
			}
		}
		return s.Apply(cluster.QueuePut{Queue: q})
	})
}

// raiseBounds tries each bound alone. It first removes the bound. If that helps, it tries to
// raise the bound just to what the queue used without it.
func (c *promoter) raiseBounds() {
	for _, b := range c.workload.bounds() {
		if c.lab.noTriesLeft() {
			return
		}
		helps := b.raisedTo(-1)
		used := int64(0)
		v := c.lab.tryAndRead(func(s *cluster.State) { used = b.used(s) }, helps)
		if !v.fits {
			if c.workload.attempt.Before != nil { // a bound rejects a job before any node is considered, so without Before no bound is the reason
				c.found.addFailure(helps, v)
			}
			continue
		}
		if used > b.amount.Value {
			if exact := b.raisedTo(used); c.lab.try(exact).fits {
				helps = exact
			}
		}
		c.found.addHelp(helps)
	}
}
