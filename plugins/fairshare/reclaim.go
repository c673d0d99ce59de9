package fairshare

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Why somebody is not a victim of reclaiming.
const (
	VictimInSameQueue         engine.Reason = "VictimInSameQueue"
	VictimGuaranteed          engine.Reason = "VictimGuaranteed" // a Guaranteed queue would fall below its quota
	VictimOfStrongerTier      engine.Reason = "VictimOfStrongerTier"
	QueueBeyondItsShare       engine.Reason = "QueueBeyondItsShare" // the one that wants to reclaim
	VictimQueueWithinItsShare engine.Reason = "VictimQueueWithinItsShare"
)

// Reasons documents what the plugin gives as reasons.
var Reasons = []engine.ReasonDoc{
	{Reason: VictimInSameQueue, Meaning: "Why nothing is reclaimed from a job: it is in the same queue."},
	{Reason: VictimGuaranteed, Meaning: "Why nothing is reclaimed from a job: its queue is Guaranteed, and would hold less than its quota without it."},
	{Reason: VictimOfStrongerTier, Meaning: "Why nothing is reclaimed from a job: its queue is of a stronger tier, and would take the room back."},
	{Reason: QueueBeyondItsShare, Meaning: "Why nothing is reclaimed from a job: the queue that wants its room would be above its own fair share with it."},
	{Reason: VictimQueueWithinItsShare, Meaning: "Why nothing is reclaimed from a job: without it, its queue would hold less than its fair share."},
}

// claimant is a job that wants its queue's share back, and its queue's branch.
type claimant struct {
	plugin *plugin
	tree   *Tree
	branch []*Queue
	lacks  []*cluster.Task
	// By level of the branch: what the job would be charged there, of what is divided.
	asks []cluster.Resources
	// By level: whether everything from there down stays within its share.
	within []bool
	// By level: the tier it counts as, and what was used before anything of the job was placed.
	tiers []cluster.Tier
	used  []cluster.Resources
	forks map[string]int
}

// reclaimable says who may go so that the job's queue gets its share.
func (p *plugin) reclaimable(job *cluster.Job, lacks []*cluster.Task) func(*engine.Victim) engine.Reason {
	if c := p.claimant(job, lacks); c != nil && len(c.asks[len(c.branch)-1]) > 0 && c.within[len(c.branch)-1] {
		return c.spare
	}
	return nil
}

// claimant is the job as one that wants its queue's share; nil where the queue is not known.
func (p *plugin) claimant(job *cluster.Job, lacks []*cluster.Task) *claimant {
	t := p.shares()
	leaf := t.byName[job.Queue]
	if leaf == nil {
		return nil
	}
	c := &claimant{plugin: p, tree: t, branch: leaf.branch, lacks: lacks, forks: map[string]int{}}
	for _, q := range c.branch {
		asks := p.asks(q, lacks)
		c.asks = append(c.asks, asks)
		c.tiers = append(c.tiers, p.state.TierWith(q.Queue, asks.Of))
		c.used = append(c.used, slices.Clone(q.Used))
	}
	c.within = make([]bool, len(c.branch)+1)
	c.within[len(c.branch)] = true
	for i := len(c.branch) - 1; i >= 0; i-- {
		c.within[i] = c.within[i+1] && c.branch[i].staysWithin(c.asks[i])
	}
	return c
}

// asks is what the tasks would be charged to the queue, of what it has a share of.
func (p *plugin) asks(q *Queue, lacks []*cluster.Task) (out cluster.Resources) {
	for i := range q.Shares {
		name := q.Shares[i].Resource
		if v := p.session.ChargeOf(q.Queue, lacks, name); v > 0 {
			out = append(out, cluster.Amount{Name: name, Value: v})
		}
	}
	return out
}

// classes are those of queues that hold more than their share of something that the
// job asks for: without any of that they might still have it.
func (p *plugin) classes(job *cluster.Job, lacks []*cluster.Task) func(cluster.Class) bool {
	c := p.claimant(job, lacks)
	if c == nil {
		return engine.NoClass(job, lacks)
	}
	return func(class cluster.Class) bool {
		leaf := c.tree.byName[class.Queue]
		if leaf == nil || slices.Contains(c.branch, leaf) || !c.within[c.fork(leaf)] {
			return false
		}
		fork := c.fork(leaf)
		return slices.ContainsFunc(c.asks[fork], func(ask cluster.Amount) bool {
			return above(leaf.branch[fork:], ask.Name, func(q *Queue) int64 { return leastCharge(q, ask.Name) })
		})
	}
}

func (q *Queue) staysWithin(asks cluster.Resources) bool {
	for _, a := range asks {
		if sh := q.share(a.Name); sh != nil && q.Used.Of(a.Name)+a.Value > sh.Share() {
			return false
		}
	}
	return true
}

func (c *claimant) spare(v *engine.Victim) engine.Reason {
	leaf := c.tree.byName[v.Job.Queue]
	if leaf == nil || slices.Contains(c.branch, leaf) { // a job stays in a queue that is gone, or has queues below it by now
		return VictimInSameQueue
	}
	fork := c.fork(leaf)
	theirs := leaf.branch[fork:]
	held := func(resource string) int64 { return v.ChargeOf(theirs[0].Queue, resource) }
	switch tier, keeps := c.plugin.state.TierWithout(theirs[0].Queue, held); {
	case keeps:
		return VictimGuaranteed
	case tier.Rank() < c.tiers[fork].Rank():
		return VictimOfStrongerTier
	case !c.within[fork]:
		return QueueBeyondItsShare
	}
	for _, ask := range c.asks[fork] {
		gone := func(q *Queue) int64 { return v.ChargeOf(q.Queue, ask.Name) }
		if held(ask.Name) > 0 && (above(theirs, ask.Name, gone) || c.deserves(fork, ask.Name) && beyond(theirs, ask.Name, gone)) {
			return engine.Consent
		}
	}
	return VictimQueueWithinItsShare
}

// fork is the level at which the branch of the victim's queue parts from the claimant's.
func (c *claimant) fork(leaf *Queue) int {
	if i, known := c.forks[leaf.Name]; known {
		return i
	}
	i := 0
	for c.branch[i] == leaf.branch[i] {
		i++
	}
	c.forks[leaf.Name] = i
	return i
}

// above reports whether all queues keep their share when so much of each is gone.
func above(branch []*Queue, resource string, gone func(*Queue) int64) bool {
	for _, q := range branch {
		if sh := q.share(resource); sh != nil {
			if v := gone(q); v > 0 && q.Used.Of(resource)-v < sh.Share() {
				return false
			}
		}
	}
	return true
}

// beyond reports whether all queues that lose something hold more than both share and quota.
func beyond(branch []*Queue, resource string, gone func(*Queue) int64) bool {
	for _, q := range branch {
		if sh := q.share(resource); sh != nil && gone(q) > 0 && q.Used.Of(resource) <= max(sh.Share(), sh.Quota) {
			return false
		}
	}
	return true
}

// deserves reports whether the claimant stays within its quotas from the level down.
func (c *claimant) deserves(fork int, resource string) bool {
	for i := fork; i < len(c.branch); i++ {
		ask := c.asks[i].Of(resource)
		if sh := c.branch[i].share(resource); ask > 0 && (sh == nil || sh.Quota < 0 || c.used[i].Of(resource)+ask > sh.Quota) {
			return false
		}
	}
	return true
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
