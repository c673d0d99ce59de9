package fairshare

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/fairshare"
)

// compare orders two siblings by what they would hold with their next job. If it used what
// they hold now, a queue could exceed its quota with a job that another queue, still within
// its own quota, then evicts. Of two queues that would both be above their share, the one
// with the lower ratio is first, because it could take the room from the other (see balance).
// The largest fraction of the total is compared by what they hold now, so that equal queues
// alternate whatever the size of their jobs.
func (p *plugin) compare(l, r engine.Bid) int {
	t := p.shares()
	a, b := t.BySlot[l.Queue.Slot()], t.BySlot[r.Queue.Slot()]
	x := *p.orderKey(a, l.Job) // a copy: it may be the same queue with another job
	return x.compare(a, p.orderKey(b, r.Job), b)
}

// freeze returns a function that compares bids with l as it is now.
func (p *plugin) freeze(l engine.Bid) func(engine.Bid) int {
	a := p.shares().BySlot[l.Queue.Slot()]
	x := *p.orderKey(a, l.Job)
	return func(r engine.Bid) int {
		b := p.tree.BySlot[r.Queue.Slot()]
		return x.compare(a, p.orderKey(b, r.Job), b)
	}
}

// orderKey is what siblings are compared by; the lower one is first.
type orderKey struct {
	job         *cluster.Job // the job that it was computed with
	rank        int          // by tier, then by whether the queue would be above its share, then by whether it has no quota or would be above it (see newKey)
	used, total int64        // of the resource of which the queue holds the largest fraction
	above       bool         // the queue would be above its share
	with        ratio        // its ratio with the job, if it would be above its share
}

// compare orders the queue with this key and another one.
func (s *orderKey) compare(q *fairshare.Queue, o *orderKey, other *fairshare.Queue) int {
	if s.rank != o.rank {
		return s.rank - o.rank
	}
	if q.Priority != other.Priority {
		return cmp.Compare(other.Priority, q.Priority)
	}
	if s.above {
		if c := s.with.compare(o.with); c != 0 {
			return c
		}
	}
	return cmp.Or(fairshare.CompareProducts(s.used, o.total, o.used, s.total), cmp.Compare(q.Created, other.Created))
}

// queueCache is what is remembered of a queue between comparisons.
type queueCache struct {
	queue    *fairshare.Queue // a new tree has new queues
	keys     [2]orderKey      // for the jobs that the queue was last compared with, if valid
	valid    bool
	listed   bool          // it is in plugin.changed
	oldest   int           // index in keys
	requests [2]jobRequest // of a leaf, for the same jobs
}

// jobRequest is what the next turn of a job requests.
type jobRequest struct {
	job    *cluster.Job
	amount cluster.Resources
}

// cacheOf returns the cache of the queue. The result is valid until the next call.
func (p *plugin) cacheOf(q *fairshare.Queue) *queueCache {
	if q.Slot() >= len(p.cache) {
		p.cache = append(p.cache, make([]queueCache, p.keeper.Slots()-len(p.cache))...)
	}
	c := &p.cache[q.Slot()]
	if c.queue != q {
		*c = queueCache{queue: q}
	}
	return c
}

// dropKeys drops what is cached of the queue alone: its keys and its ratio.
func (p *plugin) dropKeys(q *fairshare.Queue) {
	c := p.cacheOf(q)
	if c.valid = false; !c.listed {
		c.listed = true
		p.changed = append(p.changed, q.Queue)
	}
	p.highest.changed(q)
}

// bidChanges returns the queues whose bids have changed since the last call. All bids have if
// there is a new tree.
func (p *plugin) bidChanges() (queues []*cluster.Queue, all bool) {
	t := p.shares()
	queues, all = slices.Clone(p.changed), p.changedTree != t
	for _, q := range p.changed {
		if q.Slot() < len(p.cache) {
			p.cache[q.Slot()].listed = false
		}
	}
	clear(p.changed)
	p.changed, p.changedTree = p.changed[:0], t
	return queues, all
}

// dropRequests drops the cached requests of a leaf, and the keys of all queues of its branch.
func (p *plugin) dropRequests(leaf *fairshare.Queue) {
	p.cacheOf(leaf).requests = [2]jobRequest{}
	for _, q := range leaf.Branch {
		p.dropKeys(q)
	}
}

// orderKey returns the key of the queue with the job. It is cached, because there are many
// comparisons for each placement.
func (p *plugin) orderKey(q *fairshare.Queue, job *cluster.Job) *orderKey {
	c := p.cacheOf(q)
	if !c.valid {
		c.keys[0].job, c.keys[1].job, c.valid = nil, nil, true
	}
	for i := range c.keys {
		if c.keys[i].job == job {
			return &c.keys[i]
		}
	}
	key := newKey(p.tree, q, p.requestOf(job))
	key.job = job
	c = p.cacheOf(q) // requestOf may have moved it
	i := c.oldest
	c.keys[i], c.oldest = key, 1-i
	return &c.keys[i]
}

// requestOf returns what the next turn of the job requests of the divided resources. It is
// cached for the last jobs of the queue, because shares change more often than the request.
func (p *plugin) requestOf(job *cluster.Job) cluster.Resources {
	leaf := p.tree.ByName[job.Queue]
	if leaf == nil {
		return nil
	}
	c := p.cacheOf(leaf)
	for i := range c.requests {
		if c.requests[i].job == job {
			return c.requests[i].amount
		}
	}
	amount := p.charged(leaf, p.session.Lacks(job))
	c = p.cacheOf(leaf)
	c.requests[1], c.requests[0] = c.requests[0], jobRequest{job, amount}
	return amount
}

// charged returns what the tasks would be charged to the queue, of the resources it has shares of.
func (p *plugin) charged(q *fairshare.Queue, tasks []*cluster.Task) cluster.Resources {
	var out cluster.Resources
	for i := range q.Shares {
		name := q.Shares[i].Resource
		if v := p.session.ChargeOf(q.Queue, tasks, name); v > 0 {
			out = append(out, cluster.Amount{Name: name, Value: v})
		}
	}
	return out
}

// withinQuota reports whether the job's queue has a quota of a resource that the tasks request,
// and whether it and all queues above it stay within their quotas with the tasks.
func (p *plugin) withinQuota(job *cluster.Job, tasks []*cluster.Task) bool {
	leaf := p.shares().ByName[job.Queue]
	if leaf == nil {
		return false
	}
	named := false
	for _, a := range p.charged(leaf, tasks) {
		named = named || leaf.Share(a.Name).Quota >= 0
		for _, q := range leaf.Branch {
			if sh := q.Share(a.Name); sh != nil && sh.Quota >= 0 && fairshare.Add(q.Used.Of(a.Name), a.Value) > sh.Quota {
				return false
			}
		}
	}
	return named
}

// newKey computes the key of the queue with the request. The queue would be above its share, or
// its quota, if it would hold more than that of any requested resource. The rank is 4 times the
// rank of the tier, plus 2 if the queue would be above its share, plus 1 if it has no quota of
// any resource or would be above one.
func newKey(t *fairshare.Tree, q *fairshare.Queue, asks cluster.Resources) orderKey {
	s := orderKey{total: 1}
	quota, beyond, aboveShare := false, false, false
	for i := range q.Shares {
		sh := &q.Shares[i]
		used, total := q.Used.Of(sh.Resource), t.Total.Of(sh.Resource)
		if ask := asks.Of(sh.Resource); ask > 0 && total > 0 { // if no node has the resource, the request does not put the queue behind others
			with := fairshare.Add(used, ask)
			aboveShare = aboveShare || with > sh.Share()
			beyond = beyond || sh.Quota >= 0 && with > sh.Quota
		}
		quota = quota || sh.Quota >= 0
		if used > 0 && fairshare.CompareProducts(used, s.total, s.used, total) > 0 {
			s.used, s.total = used, total
		}
	}
	// What a Guaranteed queue would hold beyond its quota counts as Standard. A queue without
	// a quota cannot be beyond it.
	tier := q.Tier
	if beyond && tier == cluster.TierGuaranteed {
		tier = cluster.TierStandard
	}
	if s.rank = 4 * tier.Rank(); aboveShare {
		s.rank += 2
		s.above, s.with = true, ratioWith(t, q, asks)
	}
	if !quota || beyond {
		s.rank++
	}
	return s
}
