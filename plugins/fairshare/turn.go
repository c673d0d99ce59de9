package fairshare

import (
	"cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// compare puts two siblings in order. What decides is what they would hold with the
// job that they would give: were it what they hold now, a queue could go beyond its
// quota with a job that another queue, still within its own, then evicts. Of queues
// that would both be above their share, the one that would stand lower is first: it
// would take the room from the other (see balance). The dominant part is what they hold
// now, so that equal queues take turns whatever the size of their jobs.
func (p *plugin) compare(l, r engine.Bid) int {
	t := p.shares()
	a, b := t.bySlot[l.Queue.Slot()], t.bySlot[r.Queue.Slot()]
	x := *p.standing(a, l.Job) // a copy: it may be the same queue with another job
	return x.compare(a, p.standing(b, r.Job), b)
}

// freeze compares bids with one as it stands now.
func (p *plugin) freeze(l engine.Bid) func(engine.Bid) int {
	a := p.shares().bySlot[l.Queue.Slot()]
	x := *p.standing(a, l.Job)
	return func(r engine.Bid) int {
		b := p.tree.bySlot[r.Queue.Slot()]
		return x.compare(a, p.standing(b, r.Job), b)
	}
}

// standing is what decides between siblings; less goes first.
type standing struct {
	job         *cluster.Job // that it is judged with
	rank        int          // by tier, then above its share, then above its quota
	used, total int64        // of the resource of which the queue has the largest part
	above       bool         // it would be above its share
	with        ratio        // what it would then hold of that
}

// compare puts the queue that stands so before or after another.
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

// standing is how the queue stands with the job: there are many comparisons to a placement.
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

// forget forgets how the job's queue stood, and all above it.
func (t *Tree) forget(job *cluster.Job) {
	if leaf := t.byName[job.Queue]; leaf != nil {
		leaf.asks[0].job, leaf.asks[1].job = nil, nil
		for _, q := range leaf.branch {
			q.known = false
		}
	}
}

// asks is what a job's turn is for.
type asks struct {
	job    *cluster.Job
	amount cluster.Resources
}

// asks is what the job's turn is for, of the resources that its queue divides. It is
// remembered for the last jobs of the queue: shares change more often than that.
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

// asked is what the tasks would be charged to the queue, of what it has a share of.
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

// deserved reports whether the job's queue has a quota of something that the tasks
// ask for, and stays within its quotas with them, as do all queues above it.
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

// stand compares what the queue would hold with its share and its quota. It would be
// above one of them if it would in any resource that is asked for.
func (t *Tree) stand(q *Queue, asks cluster.Resources) standing {
	s := standing{total: 1}
	quota, beyond, aboveShare := false, false, false
	for i := range q.Shares {
		sh := &q.Shares[i]
		used, total := q.Used.Of(sh.Resource), t.Total.Of(sh.Resource)
		if ask := asks.Of(sh.Resource); ask > 0 && total > 0 { // what no node has is no reason to wait longer
			with := plus(used, ask)
			aboveShare = aboveShare || with > sh.Share()
			beyond = beyond || sh.Quota >= 0 && with > sh.Quota
		}
		quota = quota || sh.Quota >= 0
		if used > 0 && compareProducts(used, s.total, s.used, total) > 0 {
			s.used, s.total = used, total
		}
	}
	// What a Guaranteed queue would hold beyond its quota counts as Standard. One
	// without a quota has nothing to be beyond.
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
