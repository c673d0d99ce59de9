package fairshare

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/internal/tier"
)

// Why a job is not a victim of reclaiming.
const (
	VictimInSameQueue         engine.Reason = "VictimInSameQueue"
	VictimGuaranteed          engine.Reason = "VictimGuaranteed" // a Guaranteed queue, its own or one above, would fall below its quota
	VictimOfStrongerTier      engine.Reason = "VictimOfStrongerTier"
	QueueBeyondItsShare       engine.Reason = "QueueBeyondItsShare" // the one that wants to reclaim
	VictimQueueWithinItsShare engine.Reason = "VictimQueueWithinItsShare"
)

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: VictimInSameQueue, Phrase: "in the same queue", Spared: "in the same queue", Meaning: "Why nothing is reclaimed from a job: it is in the same queue."},
	{Reason: VictimGuaranteed, Phrase: "its Guaranteed queue would fall below its quota", Spared: "whose Guaranteed queue would hold less than its quota", Meaning: "Why nothing is reclaimed from a job: its queue, or one above it, is Guaranteed, and would hold less than its quota without it."},
	{Reason: VictimOfStrongerTier, Phrase: "of a stronger tier", Spared: "of a stronger tier", Meaning: "Why nothing is reclaimed from a job: its queue is of a stronger tier, and would take the room back."},
	{Reason: QueueBeyondItsShare, Phrase: "the queue that asks would be above its own fair share", Spared: "outside of a queue above its own that would exceed its fair share", Meaning: "Why nothing is reclaimed from a job: the queue that wants its room would be above its own fair share with it."},
	{Reason: VictimQueueWithinItsShare, Phrase: "its queue would fall below its fair share", Spared: "whose queue would fall below its fair share", Meaning: "Why nothing is reclaimed from a job: without it, its queue would hold less than its fair share."},
}

// claimant is a job that wants its queue's share back, and the branch of its queue.
type claimant struct {
	plugin *plugin
	tree   *Tree
	job    *cluster.Job
	branch []*Queue
	asks   []cluster.Resources // by level of the branch: what the job would be charged there
	lacks  []*cluster.Task

	opened  uint64              // version of the queues before anything was evicted
	version uint64              // of the queues, that the rest is as of; 0: of none
	left    []cluster.Resources // by level: the same, without what is placed of the job
	within  []bool              // by level of the branch: all from there down stay within their share

	mayBeWithin []bool // by level: they would once others have left

	stood map[*Queue]ratio // of the last resort: how siblings of the branch stood before anything was evicted
}

// reclaimable says which victims may leave so that the job's queue gets its share.
func (p *plugin) reclaimable(job *cluster.Job, lacks []*cluster.Task) func(*engine.Victim) engine.Verdict {
	c := p.claimant(job, lacks)
	if c == nil || len(c.asks[len(c.branch)-1]) == 0 || !c.mayStay(len(c.branch)-1, (*Share).Share) {
		return nil
	}
	return c.spare
}

// claimant is the job as one that wants its queue's share; nil where the queue is not known.
func (p *plugin) claimant(job *cluster.Job, lacks []*cluster.Task) *claimant {
	t := p.shares()
	leaf := t.byName[job.Queue]
	if leaf == nil {
		return nil
	}
	c := &claimant{plugin: p, tree: t, job: job, branch: leaf.branch, lacks: lacks, opened: p.view.Recent().QueuesVersion()}
	for _, q := range c.branch {
		c.asks = append(c.asks, p.asked(q, lacks))
	}
	c.left = make([]cluster.Resources, len(c.branch))
	c.within, c.mayBeWithin = make([]bool, len(c.branch)+1), make([]bool, len(c.branch)+1)
	c.refresh()
	return c
}

// refresh follows what the queues hold: victims have left, and tasks of the job may be
// placed. The plan is judged by the State that it ends in, so what is placed of the job
// and what it still asks for count together.
func (c *claimant) refresh() {
	version := c.plugin.view.Recent().QueuesVersion()
	if c.version == version && c.left[0] != nil {
		return
	}
	c.version = version
	for i, q := range c.branch {
		left := make(cluster.Resources, 0, len(c.asks[i]))
		for _, a := range c.asks[i] {
			left = append(left, cluster.Amount{Name: a.Name, Value: c.plugin.session.ChargeStill(q.Queue, c.lacks, a.Name)})
		}
		c.left[i] = left
	}
	c.within[len(c.branch)], c.mayBeWithin[len(c.branch)] = true, true
	for i := len(c.branch) - 1; i >= 0; i-- {
		c.within[i] = c.within[i+1] && c.stays(i, (*Share).Share)
		c.mayBeWithin[i] = c.mayBeWithin[i+1] && c.mayStay(i, (*Share).Share)
	}
}

// stays reports whether the queue of the level holds no more than the bound with the job.
func (c *claimant) stays(level int, bound func(*Share) int64) bool {
	q := c.branch[level]
	for _, a := range c.left[level] {
		if sh := q.share(a.Name); sh != nil && q.Used.Of(a.Name)+a.Value > bound(sh) {
			return false
		}
	}
	return true
}

// mayStay reports whether the queue of the level stays within the bound, or would once
// others of it have left: those of queues below it that it may reclaim from, and in the
// job's own queue those of lower priority.
func (c *claimant) mayStay(level int, bound func(*Share) int64) bool {
	q := c.branch[level]
	if c.stays(level, bound) {
		return true
	}
	if level == len(c.branch)-1 {
		if low, runs := c.plugin.view.Classes().Lowest(c.job.Queue); !runs || low >= c.job.Priority {
			return false
		}
	}
	for _, a := range c.left[level] {
		if sh := q.share(a.Name); sh != nil && q.Firm.Of(a.Name)+a.Value > bound(sh) {
			return false
		}
	}
	return true
}

// classes are those of queues that hold more than their share of something that the
// job asks for: without any of that they might still have it.
func (p *plugin) classes(job *cluster.Job, lacks []*cluster.Task) func(cluster.Class) bool {
	c := p.claimant(job, lacks)
	if c == nil {
		return engine.NoClass(job, lacks)
	}
	return func(class cluster.Class) bool {
		c.refresh()
		return c.mayTake(c.tree.byName[class.Queue], func(resource string) int64 { return p.leastCharge(class, resource) })
	}
}

// queues are those that have such classes.
func (p *plugin) queues(job *cluster.Job, lacks []*cluster.Task) (queues []string, all bool) {
	c := p.claimant(job, lacks)
	if c == nil || !slices.Contains(c.mayBeWithin[:len(c.branch)], true) {
		return nil, false
	}
	for _, q := range c.tree.bySlot {
		if c.mayTake(q, func(string) int64 { return 1 }) {
			queues = append(queues, q.Name)
		}
	}
	return queues, false
}

// mayTake reports whether the queue, and those above it up to the fork, hold so much more
// than their shares of something that the job asks for that they might lose the least that
// a victim holds.
func (c *claimant) mayTake(q *Queue, least func(resource string) int64) bool {
	leaf, fork := c.fork(q)
	return leaf != nil && c.mayBeWithin[fork] && slices.ContainsFunc(c.asks[fork], func(ask cluster.Amount) bool {
		return mayBeAbove(leaf.branch[fork:], ask.Name, least)
	})
}

// mayDeserve is deserves once others have left.
func (c *claimant) mayDeserve(level int) bool {
	for i := level; i < len(c.branch); i++ {
		if !c.mayStay(i, quotaOf) {
			return false
		}
	}
	return true
}

func (c *claimant) spare(v *engine.Victim) engine.Verdict {
	leaf, fork, objection := c.stronger(v)
	if leaf == nil {
		return engine.Protect(objection)
	}
	theirs := leaf.branch[fork:]
	switch exceeds := c.exceeds(v, theirs, fork); {
	case objection != "" && exceeds && c.mayBeWithin[fork]:
		return engine.NotYet(objection)
	case objection != "":
		return engine.Protect(objection)
	case !exceeds:
		return engine.Protect(VictimQueueWithinItsShare)
	case c.within[fork]:
		return engine.Allow
	case c.mayBeWithin[fork]:
		return engine.NotYet(QueueBeyondItsShare)
	}
	return engine.Protect(QueueBeyondItsShare)
}

// stronger finds where the branch of the victim's queue parts from the claimant's, and
// objects where they do not part or the victim's is of a stronger tier there. The leaf is
// nil where nothing ends the objection; else the claimant's quota may hold once others of
// its queue have left.
func (c *claimant) stronger(v *engine.Victim) (leaf *Queue, fork int, objection engine.Reason) {
	c.refresh()
	leaf, fork = c.fork(c.tree.byName[v.Job.Queue])
	switch {
	case leaf == nil:
		return nil, 0, VictimInSameQueue
	case c.wouldReturn(v, fork):
		return nil, 0, VictimGuaranteed
	}
	own := c.branch[fork].Queue
	theirs, keeps := tier.Without(c.plugin.view, leaf.branch[fork].Queue, func(resource string) int64 { return v.ChargeOf(leaf.branch[fork].Queue, resource) })
	switch mine := tier.With(c.plugin.view, own, c.left[fork].Of); {
	case keeps:
		return nil, 0, VictimGuaranteed
	case theirs.Rank() >= mine.Rank():
		return leaf, fork, ""
	case theirs.Rank() >= own.Tier.Rank():
		return leaf, fork, VictimOfStrongerTier
	}
	return nil, 0, VictimOfStrongerTier
}

// wouldReturn reports whether a Guaranteed queue above both would hold less than its
// quota of something that the victim holds and the job does not ask for: the victim
// would take that back from other tiers, in the name of that queue.
func (c *claimant) wouldReturn(v *engine.Victim, fork int) bool {
	for level, above := range c.branch[:fork] {
		_, keeps := tier.Without(c.plugin.view, above.Queue, func(resource string) int64 {
			if c.asks[level].Of(resource) > 0 {
				return 0
			}
			return v.ChargeOf(above.Queue, resource)
		})
		if keeps {
			return true
		}
	}
	return false
}

// fork is the victim's queue, and the level at which its branch parts from the claimant's.
// The queue is nil where they do not part: a job stays in a queue that is gone, or has
// queues below it by now.
func (c *claimant) fork(leaf *Queue) (_ *Queue, level int) {
	if leaf == nil || slices.Contains(c.branch, leaf) {
		return nil, 0
	}
	for c.branch[level] == leaf.branch[level] {
		level++
	}
	return leaf, level
}

// exceeds reports whether the queues of the victim hold more than their shares of
// something that the job asks for, so that they keep these without the victim.
func (c *claimant) exceeds(v *engine.Victim, theirs []*Queue, fork int) bool {
	return c.some(v, theirs[0], fork, func(resource string) bool { return above(theirs, resource, charged(v, resource)) })
}

// above reports whether all queues that lose something keep their share.
func above(branch []*Queue, resource string, gone func(*Queue) int64) bool {
	return keep(branch, resource, gone, (*Share).Share)
}

// keep reports whether all queues that lose something keep as much as the bound.
func keep(branch []*Queue, resource string, gone func(*Queue) int64, bound func(*Share) int64) bool {
	for _, q := range branch {
		if sh := q.share(resource); sh != nil {
			if v := gone(q); v > 0 && q.Used.Of(resource)-v < bound(sh) {
				return false
			}
		}
	}
	return true
}

// charged is what the victim is charged in the account of each queue.
func charged(v *engine.Victim, resource string) func(*Queue) int64 {
	return func(q *Queue) int64 { return v.ChargeOf(q.Queue, resource) }
}

// share is the queue's share of the resource, nil if it neither asks for any nor deserves some.
func (q *Queue) share(resource string) *Share {
	for i := range q.Shares {
		if q.Shares[i].Resource == resource {
			return &q.Shares[i]
		}
	}
	return nil
}
