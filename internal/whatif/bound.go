package whatif

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// bound is a limit of a queue that applies to the job, or a quota that the job must not
// exceed because it is not preemptible.
type bound struct {
	queue  string
	amount cluster.Amount
	quota  bool // it is a quota and not a limit
	// enough is what the bound must be so that the job is within it, as things are at the end of
	// the simulation; 0 if that is not known. Other pending jobs may be placed before the job if
	// the bound is raised.
	enough int64
}

// bounds returns all bounds that apply to the job: those of its own queue first, then those
// of the queues above it.
func (w *workload) bounds() []bound {
	if w.known != nil {
		return w.known
	}
	out := []bound{}
	q := w.state.Queue(w.job().Queue)
	for ; q != nil; q = w.state.View().Parent(q) {
		for _, a := range q.Limits {
			out = append(out, bound{queue: q.Name, amount: a})
		}
		for _, a := range q.Quota {
			if !w.job().Preemptible && a.Value != cluster.Unlimited {
				out = append(out, bound{queue: q.Name, amount: a, quota: true})
			}
		}
	}
	w.known = out
	return out
}

// readCharges finds out how far each bound must be raised for the minimum of the job. It is called
// while the State of the engine is the one at the end of the simulation.
func (l *lab) readCharges() {
	w := l.workload
	if len(w.bounds()) == 0 || w.refusal.Surplus {
		return
	}
	s := l.engine.Open(w.state, engine.Options{Now: l.now})
	defer s.Close()
	lacks := s.Lacking(w.form())
	for i := range w.known {
		b := &w.known[i]
		if charge := s.ChargeOf(w.state.Queue(b.queue), lacks, b.amount.Name); charge > 0 {
			b.enough = b.used(w.state) + charge
		}
	}
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
	from, to := quantity.Resource(b.amount.Name, b.amount.Value), "unlimited"
	if v != cluster.Unlimited {
		to = quantity.Resource(b.amount.Name, max(v, 0))
	}
	text, brief := fmt.Sprintf("with queue %s's %s raised from %s to %s", b.queue, what, from, to), raiseBrief(what, b.queue, from, to)
	if v < 0 {
		text = fmt.Sprintf("without queue %s's %s of %s", b.queue, what, from)
		brief = fmt.Sprintf("no %s of %s for %s", what, from, b.queue)
	}
	c := newChange(wire.RaiseLimit, text, 25, func(s *cluster.State) error {
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
	c.brief = brief
	return c
}

// raiseBrief returns "quota of team-a: 8 devices → 12 devices".
func raiseBrief(what, queue, from, to string) string {
	return fmt.Sprintf("%s of %s: %s → %s", what, queue, from, to)
}

// raiseBounds tries each bound alone. It first raises the bound just so far that the job is within
// it. If that does not help, such as because other pending jobs are placed first, it removes the
// bound. A quota also entitles its queue to reclaim room from other queues, so an unlimited one is
// tried if it does not help to remove it, unless so many jobs are pending that reclaiming for all
// of them would take too long. If one of these helps, raiseBounds tries to raise the bound just to
// what the queue used then.
func (c *promoter) raiseBounds() {
	for _, b := range c.workload.bounds() {
		const removed = -1
		var tries []int64
		enough := b.enough
		if b.quota {
			enough = c.withinLimit(b.queue, b.amount.Name, enough)
		}
		if enough > b.amount.Value {
			tries = append(tries, enough)
		}
		if tries = append(tries, removed); b.quota && !c.lab.isLarge {
			tries = append(tries, cluster.Unlimited)
		}
		helped := false
		var failure verdict
		for _, to := range tries {
			if c.lab.noTriesLeft() {
				return
			}
			v := c.lift(&b, to)
			if helped = v.fits; helped {
				c.raisedQuota = c.raisedQuota || b.quota
				break
			}
			if to == removed {
				failure = v
			}
		}
		if !helped && c.workload.attempt.Before != nil { // a bound rejects a job before any node is considered, so without Before no bound is the reason
			c.found.addFailure(b.raisedTo(removed), failure)
		}
	}
}

// withinLimit returns the amount, or the limit that the queue itself has of the resource if that
// is less. A quota must not be above it.
func (c *promoter) withinLimit(queue, name string, amount int64) int64 {
	resource, _ := cluster.SplitProduct(name)
	for _, l := range c.workload.state.Queue(queue).Limits {
		if l.Name == name || l.Name == resource {
			amount = min(amount, l.Value)
		}
	}
	return amount
}

// lift tries to raise the bound to v, or to remove it if v is negative. If that helps, lift also
// tries to raise the bound just to what counts for it then, and to all that the queue uses, which
// decides what the queue may reclaim. It records the smallest of these changes that helps.
func (c *promoter) lift(b *bound, v int64) verdict {
	var used []int64
	lifted := b.raisedTo(v)
	verdict := c.lab.tryAndRead(func(s *cluster.State) {
		used = []int64{b.used(s)}
		if all := s.Queue(b.queue).Used.Of(b.amount.Name); b.quota && all > used[0] {
			used = append(used, all)
		}
	}, lifted)
	if !verdict.fits {
		return verdict
	}
	for _, to := range used {
		if to <= b.amount.Value || v >= 0 && to >= v {
			continue
		}
		if exact := b.raisedTo(to); c.lab.try(exact).fits {
			lifted = exact
			break
		}
	}
	c.found.addHelp(lifted)
	return verdict
}
