package fairshare

import (
	"cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// compare orders two siblings by what they would hold with their next job. If it used what
// they hold now, a queue could exceed its quota with a job that another queue, still within
// its own quota, then evicts. Of two queues that would both be above their share, the one
// with the lower ratio is first, because it could take the room from the other (see balance).
// The largest fraction of the total is compared by what they hold now, so that equal queues
// alternate whatever the size of their jobs.
func (p *plugin) compare(l, r engine.Bid) int {
	t := p.shares()
	a, b := t.bySlot[l.Queue.Slot()], t.bySlot[r.Queue.Slot()]
	x := *p.standing(a, l.Job) // a copy: it may be the same queue with another job
	return x.compare(a, p.standing(b, r.Job), b)
}

// freeze returns a function that compares bids with l as it is now.
func (p *plugin) freeze(l engine.Bid) func(engine.Bid) int {
	a := p.shares().bySlot[l.Queue.Slot()]
	x := *p.standing(a, l.Job)
	return func(r engine.Bid) int {
		b := p.tree.bySlot[r.Queue.Slot()]
		return x.compare(a, p.standing(b, r.Job), b)
	}
}

// standing is what siblings are compared by; the lower one is first.
type standing struct {
	job         *cluster.Job // the job that it was computed with
	rank        int          // by tier, then above its share or not, then above its quota or not
	used, total int64        // of the resource of which the queue holds the largest fraction
	above       bool         // the queue would be above its share
	with        ratio        // its ratio with the job, if it would be above its share
}

// compare orders the queue with this standing and another one.
func (s *standing) compare(q *Queue, o *standing, other *Queue) int {
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
	return cmp.Or(compareProducts(s.used, o.total, o.used, s.total), cmp.Compare(q.Created, other.Created))
}

// standing returns the standing of the queue with the job. It is cached, because there are
// many comparisons for each placement.
func (p *plugin) standing(q *Queue, job *cluster.Job) *standing {
	if !q.known {
		q.stands[0].job, q.stands[1].job, q.known = nil, nil, true
	}
	for i := range q.stands {
		if q.stands[i].job == job {
			return &q.stands[i]
		}
	}
	s := &q.stands[q.oldest]
	q.oldest = 1 - q.oldest
	*s = p.tree.stand(q, p.asks(job))
	s.job = job
	return s
}

// forget drops the cached standings of the job's queue and of all queues above it.
func (t *Tree) forget(job *cluster.Job) {
	if leaf := t.byName[job.Queue]; leaf != nil {
		leaf.asks[0].job, leaf.asks[1].job = nil, nil
		for _, q := range leaf.branch {
			q.known = false
		}
	}
}

// asks is what the next turn of a job requests.
type asks struct {
	job    *cluster.Job
	amount cluster.Resources
}

// asks returns what the next turn of the job requests of the divided resources. It is cached
// for the last jobs of the queue, because shares change more often than the request.
func (p *plugin) asks(job *cluster.Job) cluster.Resources {
	leaf := p.tree.byName[job.Queue]
	if leaf == nil {
		return nil
	}
	for i := range leaf.asks {
		if leaf.asks[i].job == job {
			return leaf.asks[i].amount
		}
	}
	leaf.asks[1] = leaf.asks[0]
	leaf.asks[0] = asks{job, p.asked(leaf, p.session.Lacks(job))}
	return leaf.asks[0].amount
}

// asked returns what the tasks would be charged to the queue, of the resources it has shares of.
func (p *plugin) asked(q *Queue, tasks []*cluster.Task) cluster.Resources {
	var out cluster.Resources
	for i := range q.Shares {
		name := q.Shares[i].Resource
		if v := p.session.ChargeOf(q.Queue, tasks, name); v > 0 {
			out = append(out, cluster.Amount{Name: name, Value: v})
		}
	}
	return out
}

// deserved reports whether the job's queue has a quota of a resource that the tasks request,
// and whether it and all queues above it stay within their quotas with the tasks.
func (p *plugin) deserved(job *cluster.Job, tasks []*cluster.Task) bool {
	leaf := p.shares().byName[job.Queue]
	if leaf == nil {
		return false
	}
	named := false
	for _, a := range p.asked(leaf, tasks) {
		named = named || leaf.share(a.Name).Quota >= 0
		for _, q := range leaf.branch {
			if sh := q.share(a.Name); sh != nil && sh.Quota >= 0 && plus(q.Used.Of(a.Name), a.Value) > sh.Quota {
				return false
			}
		}
	}
	return named
}

// stand computes the standing of the queue with the request. The queue is above its share,
// or its quota, if it would be in any requested resource.
func (t *Tree) stand(q *Queue, asks cluster.Resources) standing {
	s := standing{total: 1}
	quota, beyond, aboveShare := false, false, false
	for i := range q.Shares {
		sh := &q.Shares[i]
		used, total := q.Used.Of(sh.Resource), t.Total.Of(sh.Resource)
		if ask := asks.Of(sh.Resource); ask > 0 && total > 0 { // a resource that no node has does not lower the rank
			with := plus(used, ask)
			aboveShare = aboveShare || with > sh.Share()
			beyond = beyond || sh.Quota >= 0 && with > sh.Quota
		}
		quota = quota || sh.Quota >= 0
		if used > 0 && compareProducts(used, s.total, s.used, total) > 0 {
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
		s.above, s.with = true, t.ratio(q, asks)
	}
	if !quota || beyond {
		s.rank++
	}
	return s
}
