package fairshare

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/fairshare"
	"github.com/berth-project/berth/plugins/internal/tier"
)

// The reasons why a victim is protected from being reclaimed.
const (
	// VictimInSameQueue means that the branches of the two queues do not fork: the victim is
	// in the job's own queue, in a queue above it, or in a queue that was removed.
	VictimInSameQueue         engine.Reason = "VictimInSameQueue"
	VictimGuaranteed          engine.Reason = "VictimGuaranteed" // a Guaranteed queue, the victim's or one above it, would hold less than its quota
	VictimOfStrongerTier      engine.Reason = "VictimOfStrongerTier"
	QueueBeyondItsShare       engine.Reason = "QueueBeyondItsShare" // the queue that needs the room
	VictimQueueWithinItsShare engine.Reason = "VictimQueueWithinItsShare"
)

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: VictimInSameQueue, Phrase: "in the same queue", Protects: "in the same queue", Meaning: "Why a job is not reclaimed: it is in the same queue as the job that needs its room, in a queue above that queue, or in a queue that was removed."},
	{Reason: VictimGuaranteed, Phrase: "its Guaranteed queue would hold less than its quota", Protects: "in Guaranteed queues that would hold less than their quota", Meaning: "Why a job is not reclaimed: its queue, or one above it, is Guaranteed, and would hold less than its quota without the job."},
	{Reason: VictimOfStrongerTier, Phrase: "of a stronger tier", Protects: "of a stronger tier", Meaning: "Why a job is not reclaimed: its queue is of a stronger tier, and would take the room back."},
	{Reason: QueueBeyondItsShare, Phrase: "the queue that needs the room would exceed its own fair share", Protects: "outside of a queue above its own that would exceed its fair share", Meaning: "Why a job is not reclaimed: with its room, the queue that needs the room would exceed its own fair share."},
	{Reason: VictimQueueWithinItsShare, Phrase: "its queue would hold less than its fair share", Protects: "in queues that would hold less than their fair share", Meaning: "Why a job is not reclaimed: without the job, its queue would hold less than its fair share."},
}

// reclaimer is a job that needs room, with the branch of its queue.
type reclaimer struct {
	plugin *plugin
	tree   *fairshare.Tree
	job    *cluster.Job
	branch []*fairshare.Queue
	asks   []cluster.Resources // by level of the branch: what the job would be charged to the queue
	lacks  []*cluster.Task

	opened  uint64              // version of the queues before anything was evicted
	version uint64              // version of the queues for which the following fields are correct; it means nothing while left[0] is nil
	left    []cluster.Resources // by level: asks without the tasks of the job that are already placed
	within  []bool              // by level: the queues from this level down stay within their shares

	mayBeWithin []bool // by level: they would after further evictions

	ratiosBefore map[*fairshare.Queue]ratio // for the last resort: the ratios of siblings of the branch before anything was evicted
}

// reclaimable decides which victims may be evicted so that the job's queue gets its share.
func (p *plugin) reclaimable(job *cluster.Job, lacks []*cluster.Task) func(*engine.Victim) engine.Verdict {
	c := p.reclaimer(job, lacks)
	if c == nil || len(c.asks[len(c.branch)-1]) == 0 || !c.mayStay(len(c.branch)-1, (*fairshare.Share).Share) {
		return nil
	}
	return c.judge
}

// reclaimer returns the reclaimer for the job, and nil if its queue is not known. The hooks for
// one job share it as long as no queue changes.
func (p *plugin) reclaimer(job *cluster.Job, lacks []*cluster.Task) *reclaimer {
	c, t := p.shared, p.shares()
	if c == nil || c.job != job || c.tree != t || c.opened != p.view.Recent().QueuesVersion() || !slices.Equal(c.lacks, lacks) {
		c = p.newReclaimer(job, lacks)
		p.shared = c
	}
	return c
}

func (p *plugin) newReclaimer(job *cluster.Job, lacks []*cluster.Task) *reclaimer {
	t := p.shares()
	leaf := t.ByName[job.Queue]
	if leaf == nil {
		return nil
	}
	c := &reclaimer{plugin: p, tree: t, job: job, branch: leaf.Branch, lacks: lacks, opened: p.view.Recent().QueuesVersion()}
	levels := len(c.branch)
	asks, within := make([]cluster.Resources, 2*levels), make([]bool, 2*levels+2)
	c.asks, c.left = asks[:levels], asks[levels:]
	c.within, c.mayBeWithin = within[:levels+1], within[levels+1:]
	for i, q := range c.branch {
		c.asks[i] = p.charged(q, lacks)
	}
	c.refresh()
	return c
}

// refresh updates the fields that depend on what the queues hold: victims were evicted, or
// tasks of the job were placed. A plan is judged by the State that it ends in, so what is
// placed of the job and what it still requests count together.
func (c *reclaimer) refresh() {
	version := c.plugin.view.Recent().QueuesVersion()
	if c.version == version && c.left[0] != nil {
		return
	}
	c.version = version
	for i, q := range c.branch {
		left := c.left[i][:0]
		if left == nil {
			left = make(cluster.Resources, 0, len(c.asks[i]))
		}
		for _, a := range c.asks[i] {
			left = append(left, cluster.Amount{Name: a.Name, Value: c.plugin.session.ChargeUnplaced(q.Queue, c.lacks, a.Name)})
		}
		c.left[i] = left
	}
	c.within[len(c.branch)], c.mayBeWithin[len(c.branch)] = true, true
	for i := len(c.branch) - 1; i >= 0; i-- {
		c.within[i] = c.within[i+1] && c.stays(i, (*fairshare.Share).Share)
		c.mayBeWithin[i] = c.mayBeWithin[i+1] && c.mayStay(i, (*fairshare.Share).Share)
	}
}

// stays reports whether the queue at the level holds no more than the bound with the job.
func (c *reclaimer) stays(level int, bound func(*fairshare.Share) int64) bool {
	q := c.branch[level]
	for _, a := range c.left[level] {
		if sh := q.Share(a.Name); sh != nil && q.Used.Of(a.Name)+a.Value > bound(sh) {
			return false
		}
	}
	return true
}

// mayStay reports whether the queue at the level stays within the bound, or would after
// further evictions of preemptible jobs: from queues below it that it may reclaim from, and
// in the job's own queue of jobs of lower priority.
func (c *reclaimer) mayStay(level int, bound func(*fairshare.Share) int64) bool {
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
		if sh := q.Share(a.Name); sh != nil && q.UsedByFirm.Of(a.Name)+a.Value > bound(sh) {
			return false
		}
	}
	return true
}

// classes returns the classes from which the job may reclaim: their queues hold so much more
// than their share of a requested resource that they may keep their share without the smallest
// possible victim.
func (p *plugin) classes(job *cluster.Job, lacks []*cluster.Task) func(cluster.Class) bool {
	c := p.reclaimer(job, lacks)
	if c == nil {
		return engine.NoClass(job, lacks)
	}
	return func(class cluster.Class) bool {
		c.refresh()
		return c.mayTake(c.tree.ByName[class.Queue], c.mayBeWithin, func(resource string) int64 { return p.leastCharge(class, resource) })
	}
}

// queues returns the queues that have such classes.
func (p *plugin) queues(job *cluster.Job, lacks []*cluster.Task) (queues []string, all bool) {
	c := p.reclaimer(job, lacks)
	if c == nil {
		return nil, false
	}
	return c.mayTakeFrom(c.mayBeWithin), false
}

// firstClasses is classes for the first victim: without further evictions, the job's queues
// must stay within their shares.
func (p *plugin) firstClasses(job *cluster.Job, lacks []*cluster.Task) func(cluster.Class) bool {
	c := p.reclaimer(job, lacks)
	if c == nil {
		return engine.NoClass(job, lacks)
	}
	return func(class cluster.Class) bool {
		c.refresh()
		return c.mayTake(c.tree.ByName[class.Queue], c.within, func(resource string) int64 { return p.leastCharge(class, resource) })
	}
}

// firstQueues returns the queues that have the classes of firstClasses.
func (p *plugin) firstQueues(job *cluster.Job, lacks []*cluster.Task) (queues []string, all bool) {
	c := p.reclaimer(job, lacks)
	if c == nil {
		return nil, false
	}
	return c.mayTakeFrom(c.within), false
}

// mayTakeFrom returns the queues that the job might take from, if within says at which levels
// its own queues stay within their shares.
func (c *reclaimer) mayTakeFrom(within []bool) (queues []string) {
	if !slices.Contains(within[:len(c.branch)], true) {
		return nil
	}
	for _, q := range c.tree.BySlot {
		if c.mayTake(q, within, func(string) int64 { return 1 }) {
			queues = append(queues, q.Name)
		}
	}
	return queues
}

// mayTake reports whether the queue, and the queues above it up to the fork, hold so much more
// than their shares of a requested resource that they might lose the least that a victim
// holds, and whether the job's own queues stay within their shares at the fork.
func (c *reclaimer) mayTake(q *fairshare.Queue, within []bool, least func(resource string) int64) bool {
	leaf, fork := c.fork(q)
	return leaf != nil && within[fork] && slices.ContainsFunc(c.asks[fork], func(ask cluster.Amount) bool {
		return mayKeepShares(leaf.Branch[fork:], ask.Name, least)
	})
}

// mayStayWithinQuota is staysWithinQuota after further evictions.
func (c *reclaimer) mayStayWithinQuota(level int) bool {
	for i := level; i < len(c.branch); i++ {
		if !c.mayStay(i, quotaOf) {
			return false
		}
	}
	return true
}

func (c *reclaimer) judge(v *engine.Victim) engine.Verdict {
	leaf, fork, objection := c.checkTiers(v)
	if leaf == nil {
		return engine.Protect(objection)
	}
	theirs := leaf.Branch[fork:]
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

// checkTiers finds the level at which the branch of the victim's queue forks from the
// reclaimer's. It objects in three cases: the branches do not fork (VictimInSameQueue), a
// Guaranteed queue would hold less than its quota (VictimGuaranteed), or the victim's queue is
// of a stronger tier at the fork (VictimOfStrongerTier). The leaf is nil if the objection is
// final. VictimOfStrongerTier is not final if the tier that is set for the reclaimer's queue
// would be strong enough: a Guaranteed queue counts as Standard only while it would be beyond its
// quota with the job, and further evictions may bring it within its quota.
func (c *reclaimer) checkTiers(v *engine.Victim) (leaf *fairshare.Queue, fork int, objection engine.Reason) {
	c.refresh()
	leaf, fork = c.fork(c.tree.ByName[v.Job.Queue])
	switch {
	case leaf == nil:
		return nil, 0, VictimInSameQueue
	case c.wouldTakeBack(v, fork):
		return nil, 0, VictimGuaranteed
	}
	own := c.branch[fork].Queue
	theirs, keeps := tier.WithoutVictim(c.plugin.view, leaf.Branch[fork].Queue, func(resource string) int64 { return v.ChargeOf(leaf.Branch[fork].Queue, resource) })
	switch mine := tier.WithJob(c.plugin.view, own, c.left[fork].Of); {
	case keeps:
		return nil, 0, VictimGuaranteed
	case theirs.Rank() >= mine.Rank():
		return leaf, fork, ""
	case theirs.Rank() >= own.Tier.Rank():
		return leaf, fork, VictimOfStrongerTier
	}
	return nil, 0, VictimOfStrongerTier
}

// wouldTakeBack reports whether a common ancestor of the job's queue and the victim's queue is
// Guaranteed and would hold less than its quota without the victim. The victim's queue could
// then reclaim what it lost, within the guarantee of that ancestor, from queues of weaker tiers.
// Only resources that the job does not request are checked: of the others, the job takes the
// victim's place below the same ancestor.
func (c *reclaimer) wouldTakeBack(v *engine.Victim, fork int) bool {
	for level, above := range c.branch[:fork] {
		_, keeps := tier.WithoutVictim(c.plugin.view, above.Queue, func(resource string) int64 {
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

// fork returns the victim's queue and the level at which its branch forks from the
// reclaimer's. The queue is nil if they do not fork: a running job may be in a queue that was
// removed, or that has queues below it by now.
func (c *reclaimer) fork(leaf *fairshare.Queue) (_ *fairshare.Queue, level int) {
	if leaf == nil || slices.Contains(c.branch, leaf) {
		return nil, 0
	}
	for c.branch[level] == leaf.Branch[level] {
		level++
	}
	return leaf, level
}

// exceeds reports whether the victim's queues hold so much more than their shares of a
// requested resource that they keep their shares without the victim.
func (c *reclaimer) exceeds(v *engine.Victim, theirs []*fairshare.Queue, fork int) bool {
	return c.some(v, theirs[0], fork, func(resource string) bool { return keepShares(theirs, resource, charged(v, resource)) })
}

// keepShares reports whether all queues that lose something keep their share.
func keepShares(branch []*fairshare.Queue, resource string, gone func(*fairshare.Queue) int64) bool {
	return keep(branch, resource, gone, (*fairshare.Share).Share)
}

// keep reports whether all queues that lose something keep at least the bound.
func keep(branch []*fairshare.Queue, resource string, gone func(*fairshare.Queue) int64, bound func(*fairshare.Share) int64) bool {
	for _, q := range branch {
		if sh := q.Share(resource); sh != nil {
			if v := gone(q); v > 0 && q.Used.Of(resource)-v < bound(sh) {
				return false
			}
		}
	}
	return true
}

// charged returns a function for what the victim is charged to a queue.
func charged(v *engine.Victim, resource string) func(*fairshare.Queue) int64 {
	return func(q *fairshare.Queue) int64 { return v.ChargeOf(q.Queue, resource) }
}
