package fairshare

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/fairshare"
)

// Jobs cannot be divided, so there may be no plan that keeps all queues within their
// shares. If the search for such a plan fails, a second search is made, in which two more
// rules allow victims. The ratio of a queue is what it holds divided by its share, in the
// resource for which that is highest. A queue that holds something without a share has a
// higher ratio than all queues with a share.
//
//   - A queue that stays within its quota takes from queues that are beyond theirs. Each
//     victim is allowed while its queue still holds more than its quota.
//   - A queue takes from a sibling, at the level at which their branches fork. Three
//     conditions are checked for each victim: the ratio of the queue, with the job, must be
//     lower than the ratio of the sibling before any eviction; a queue that would be beyond
//     its quota takes nothing that another queue holds within its quota; and below the
//     sibling, the queues with the highest ratios lose first. One condition is checked for
//     the whole plan, by the Balance: with the plan, either more is held within shares, or
//     equally much is, and the ratios of the siblings, the highest first, are lower at each
//     level at which a victim needs this rule, and not higher at the other levels above the
//     deepest of these. For these ratios, each queue counts as holding all idle room that it
//     requests.

// lastResort returns the two rules.
func (p *plugin) lastResort() engine.LastResort {
	return engine.LastResort{
		Victims: p.reclaimableLast, Classes: p.classesLast, First: engine.FirstVictims{Classes: p.firstClassesLast}, Balance: p.balance,
	}
}

// reclaimableLast decides which victims may be evicted by one of the rules.
func (p *plugin) reclaimableLast(job *cluster.Job, lacks []*cluster.Task) func(*engine.Victim) engine.Verdict {
	c := p.lastReclaimer(job, lacks)
	if c == nil {
		return nil
	}
	return c.judgeLast
}

// lastReclaimer returns the reclaimer for the job, and nil if no rule can allow any victim.
func (p *plugin) lastReclaimer(job *cluster.Job, lacks []*cluster.Task) *reclaimer {
	c := p.newReclaimer(job, lacks)
	if c == nil || len(c.asks[len(c.branch)-1]) == 0 {
		return nil
	}
	for level, q := range c.branch {
		if c.mayStayWithinQuota(level) {
			return c
		}
		// The queue itself does not count: without the job, its ratio is not higher than with it.
		if ratioWith(c.tree, q, c.left[level]).compare(p.highest.of(c.tree, q.Parent)) < 0 {
			return c
		}
	}
	return nil
}

// classesLast returns the classes of queues that one of the rules may take from.
func (p *plugin) classesLast(job *cluster.Job, lacks []*cluster.Task) func(cluster.Class) bool {
	return p.lastClasses(job, lacks, func(c *reclaimer, theirs []*fairshare.Queue, fork int, resource string, least func(string) int64) bool {
		return c.isMoreEven(fork, theirs[0]) || c.mayStayWithinQuota(fork) && (c.mayExceedQuotas(theirs, resource) || c.mayBeMoreEven(fork, theirs[0])) ||
			c.mayBeWithin[fork] && mayKeepShares(theirs, resource, least)
	})
}

// firstClassesLast returns the classes of queues that one of the rules may take from without
// further evictions.
func (p *plugin) firstClassesLast(job *cluster.Job, lacks []*cluster.Task) func(cluster.Class) bool {
	return p.lastClasses(job, lacks, func(c *reclaimer, theirs []*fairshare.Queue, fork int, resource string, least func(string) int64) bool {
		return c.isMoreEven(fork, theirs[0]) || c.staysWithinQuota(fork) && c.mayExceedQuotas(theirs, resource) ||
			c.within[fork] && mayKeepShares(theirs, resource, least)
	})
}

// classTest reports whether one of the rules may take the resource from a class. The branches of
// the reclaimer and of the class fork at the level fork, and theirs are the queues of the class
// from that level down. least returns the least of a resource that a queue loses with a victim of
// the class.
type classTest func(c *reclaimer, theirs []*fairshare.Queue, fork int, resource string, least func(string) int64) bool

// lastClasses returns a function that calls the test for a class, with each resource that the job
// requests and the class's queue at the fork holds, until the test returns true. If no rule can
// allow any victim, the function returns false for all classes.
func (p *plugin) lastClasses(job *cluster.Job, lacks []*cluster.Task, test classTest) func(cluster.Class) bool {
	c := p.lastReclaimer(job, lacks)
	if c == nil {
		return engine.NoClass(job, lacks)
	}
	return func(class cluster.Class) bool {
		c.refresh()
		leaf, fork := c.fork(c.tree.ByName[class.Queue])
		if leaf == nil {
			return false
		}
		theirs := leaf.Branch[fork:]
		least := func(resource string) int64 { return p.leastCharge(class, resource) }
		return slices.ContainsFunc(c.asks[fork], func(ask cluster.Amount) bool {
			return theirs[0].Used.Of(ask.Name) > 0 && test(c, theirs, fork, ask.Name, least)
		})
	}
}

// quotaOf returns the quota as a bound. Without a quota the bound is 0.
func quotaOf(sh *fairshare.Share) int64 { return max(sh.Quota, 0) }

func (c *reclaimer) judgeLast(v *engine.Victim) engine.Verdict {
	leaf, fork, objection := c.checkTiers(v)
	if leaf == nil {
		return engine.Protect(objection)
	}
	theirs := leaf.Branch[fork:]
	switch allowed := c.allows(v, theirs, fork); {
	case objection == "" && allowed:
		return engine.Allow
	case allowed || c.mayAllow(v, theirs, fork):
		return engine.NotYet(cmp.Or(objection, VictimQueueWithinItsShare))
	}
	return engine.Protect(cmp.Or(objection, VictimQueueWithinItsShare))
}

// allows reports whether the victim may be evicted by shares or by one of the rules, as the
// queues are now. It calls ratioBefore in any case, so that the ratio is recorded before a
// victim of the sibling is evicted, even if another rule allows that victim.
func (c *reclaimer) allows(v *engine.Victim, theirs []*fairshare.Queue, fork int) bool {
	withinQuota := c.staysWithinQuota(fork)
	c.ratioBefore(theirs[0])
	switch {
	case c.within[fork] && c.exceeds(v, theirs, fork):
		return true
	case withinQuota && c.every(v, theirs[0], fork, func(resource string) bool { return exceedQuotas(theirs, resource, charged(v, resource)) }):
		return true
	}
	return c.isMoreEven(fork, theirs[0]) && (withinQuota || c.every(v, theirs[0], fork, func(resource string) bool { return keep(theirs, resource, charged(v, resource), quotaOf) })) &&
		c.some(v, theirs[0], fork, func(resource string) bool { return c.haveHighestRatio(theirs[1:], resource) })
}

// mayAllow reports whether the victim may be evicted after further evictions, when the
// reclaimer stays within its share or its quota.
func (c *reclaimer) mayAllow(v *engine.Victim, theirs []*fairshare.Queue, fork int) bool {
	if c.mayBeWithin[fork] && c.exceeds(v, theirs, fork) {
		return true
	}
	return !c.staysWithinQuota(fork) && c.mayStayWithinQuota(fork) && c.some(v, theirs[0], fork, func(resource string) bool {
		return c.mayExceedQuotas(theirs, resource) || c.mayBeMoreEven(fork, theirs[0])
	})
}

// some reports whether the condition holds for some resource that the job requests and that
// the sibling is charged for the victim.
func (c *reclaimer) some(v *engine.Victim, sibling *fairshare.Queue, fork int, holds func(resource string) bool) bool {
	return slices.ContainsFunc(c.asks[fork], func(ask cluster.Amount) bool {
		return v.ChargeOf(sibling.Queue, ask.Name) > 0 && holds(ask.Name)
	})
}

// every reports whether there are such resources and the condition holds for all of them:
// what is held within the quota of one resource is not taken because another resource is
// held beyond its quota.
func (c *reclaimer) every(v *engine.Victim, sibling *fairshare.Queue, fork int, holds func(resource string) bool) bool {
	return c.some(v, sibling, fork, func(string) bool { return true }) &&
		!c.some(v, sibling, fork, func(resource string) bool { return !holds(resource) })
}

// staysWithinQuota reports whether the reclaimer stays within its quotas from the level down.
func (c *reclaimer) staysWithinQuota(fork int) bool {
	for level := fork; level < len(c.branch); level++ {
		if !c.stays(level, quotaOf) {
			return false
		}
	}
	return true
}

// isMoreEven reports whether the ratio of the reclaimer's queue at the level, with the job, is
// lower than that of the sibling before anything was evicted.
func (c *reclaimer) isMoreEven(level int, sibling *fairshare.Queue) bool {
	return ratioWith(c.tree, c.branch[level], c.left[level]).compare(c.ratioBefore(sibling)) < 0
}

// mayBeMoreEven is isMoreEven after all possible evictions from the reclaimer's queue.
func (c *reclaimer) mayBeMoreEven(level int, sibling *fairshare.Queue) bool {
	q := c.branch[level]
	return ratioOf(c.tree, q, q.UsedByFirm, c.left[level]).compare(c.ratioBefore(sibling)) < 0
}

// ratioBefore returns the ratio that the sibling had when ratioBefore was first called for it.
// That is before a victim of the sibling was evicted, because allows calls it for each victim.
func (c *reclaimer) ratioBefore(sibling *fairshare.Queue) ratio {
	before, known := c.ratiosBefore[sibling]
	if !known {
		if c.ratiosBefore == nil {
			c.ratiosBefore = map[*fairshare.Queue]ratio{}
		}
		before = ratioWith(c.tree, sibling, nil)
		c.ratiosBefore[sibling] = before
	}
	return before
}

// exceedQuotas reports whether all queues that lose something hold more than their quota.
func exceedQuotas(branch []*fairshare.Queue, resource string, gone func(*fairshare.Queue) int64) bool {
	return !slices.ContainsFunc(branch, func(q *fairshare.Queue) bool {
		sh := q.Share(resource)
		return sh != nil && gone(q) > 0 && q.Used.Of(resource) <= quotaOf(sh)
	})
}

// mayExceedQuotas reports whether all queues may hold more than their quota. A queue that changed
// since the search began may have lost victims, and holds more again when a plan is undone.
func (c *reclaimer) mayExceedQuotas(branch []*fairshare.Queue, resource string) bool {
	return !slices.ContainsFunc(branch, func(q *fairshare.Queue) bool {
		sh := q.Share(resource)
		if resource == gpu && q.SliceTerms {
			return false // not tested: a victim that holds slices may be charged 0 of nvidia.com/gpu to this queue
		}
		return sh != nil && c.plugin.view.Recent().Queue(q.Queue) <= c.opened && q.Used.Of(resource) <= quotaOf(sh)
	})
}

// siblings returns the queues with the same parent, including the queue itself.
func (c *reclaimer) siblings(q *fairshare.Queue) []*fairshare.Queue {
	return childrenOf(c.tree, q.Parent)
}

// haveHighestRatio reports whether no sibling of these queues that has victims has a higher ratio
// than they do.
func (c *reclaimer) haveHighestRatio(branch []*fairshare.Queue, resource string) bool {
	for _, q := range branch {
		own := ratioWith(c.tree, q, nil)
		for _, o := range c.siblings(q) {
			if o != q && o.Used.Of(resource) > o.UsedByFirm.Of(resource) && ratioWith(c.tree, o, nil).compare(own) > 0 {
				return false
			}
		}
	}
	return true
}

// balance measures the levels at which the plan is allowed only if the siblings are more even
// with it. It returns nil if there is no such level.
func (p *plugin) balance(job *cluster.Job, lacks []*cluster.Task, plan []*engine.Victim) func() engine.Balance {
	c := p.newReclaimer(job, lacks)
	if c == nil {
		return nil
	}
	lower := make([]bool, len(c.branch))
	deepest := -1
	for _, v := range plan {
		leaf, fork := c.fork(c.tree.ByName[v.Job.Queue])
		if v.Purpose != engine.Reclaim || leaf == nil || c.isFair(v, leaf.Branch[fork:], fork, plan) {
			continue
		}
		lower[fork], deepest = true, max(deepest, fork)
	}
	if deepest < 0 {
		return nil
	}
	return func() engine.Balance {
		b := &balance{lower: lower, within: heldWithinShares(c.tree)}
		idle := idleOf(c.tree)
		for _, q := range c.branch[:deepest+1] {
			var level []ratio
			for _, o := range c.siblings(q) {
				level = append(level, ratioWithIdle(c.tree, o, idle))
			}
			slices.SortFunc(level, func(a, b ratio) int { return b.compare(a) })
			b.levels = append(b.levels, level)
		}
		return b
	}
}

// isFair reports whether the victim may be evicted by shares or quotas alone, in the State in
// which the plan ends.
func (c *reclaimer) isFair(v *engine.Victim, theirs []*fairshare.Queue, fork int, plan []*engine.Victim) bool {
	if c.within[fork] && c.some(v, theirs[0], fork, func(resource string) bool { return holdShares(theirs, resource, charged(v, resource)) }) {
		return true
	}
	return c.staysWithinQuota(fork) && c.every(v, theirs[0], fork, func(resource string) bool {
		return !slices.ContainsFunc(theirs, func(q *fairshare.Queue) bool {
			largest := int64(0)
			for _, o := range plan {
				if below := c.tree.ByName[o.Job.Queue]; o.Purpose != engine.Move && below != nil && slices.Contains(below.Branch, q) {
					largest = max(largest, o.ChargeOf(q.Queue, resource))
				}
			}
			sh := q.Share(resource)
			return sh != nil && q.Used.Of(resource)+largest <= quotaOf(sh)
		})
	})
}

// holdShares reports whether all queues that have lost something hold their share.
func holdShares(branch []*fairshare.Queue, resource string, lost func(*fairshare.Queue) int64) bool {
	return !slices.ContainsFunc(branch, func(q *fairshare.Queue) bool {
		sh := q.Share(resource)
		return sh != nil && lost(q) > 0 && q.Used.Of(resource) < sh.Share()
	})
}
