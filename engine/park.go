package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// fileAfterTurn puts the job into its bucket after it was refused, or takes it out of the
// backlog after it was placed. It reports whether the refusal differs from the job's
// previous one.
func (b *backlog) fileAfterTurn(job *cluster.Job, r *Refusal) (news bool) {
	e := b.waiters.At(job.Slot())
	tried := e.bucket // nil: the job was not parked
	if r == nil {
		b.remove(e)
		b.waiters.Set(job.Slot(), nil)
		if b.view.IsPending(job) {
			b.again(job)
		}
		if tried != nil && len(tried.jobs) > 0 {
			e.lane.putInLine(tried) // there may be room for the next job of the bucket as well
		}
		return false
	}
	if tried != nil && (e.taskCounts != taskCountsOf(job) || b.lane(job) != e.lane) {
		b.remove(e)
		tried = nil
	}
	same := tried != nil && r.Reason == tried.refusal.Reason && r.Permanent == tried.refusal.Permanent
	k := b.park(e, r)
	if tried != nil {
		k.refusal, k.refusalNumber = r, b.refusalNumber
		if !same && len(k.jobs) > 1 { // the other jobs of the bucket get the new refusal when they are tried
			k.forced = true
			k.lane.putInLine(k)
		}
	}
	news = e.refusal == nil || !e.refusal.saysSame(r)
	e.refusal, e.refusalNumber = r, b.refusalNumber
	return news
}

// park puts the refused job into its bucket, and records the refusal, the versions of the
// State and the back-off for all jobs of the bucket.
func (b *backlog) park(e *waiter, r *Refusal) *bucket {
	b.refusalNumber++
	k := e.bucket
	if k == nil {
		e.lane, e.turn = b.lane(e.job), turnOf(e.job)
		key := b.bucketKey(e.job)
		if k = e.lane.buckets[key]; k == nil {
			k = &bucket{key: key, set: e.job.Set.Name, lane: e.lane, timer: -1, refusal: r, refusalNumber: b.refusalNumber, parked: e.parked}
			e.lane.buckets[key] = k
			if k.set != "" {
				b.replica[k.set] = append(b.replica[k.set], k)
			}
		} else if e.parked.Tries == 0 {
			k.parked = cluster.Parked{} // the bucket takes over the back-off of the new job, which starts anew
		}
		i, _ := k.index(b.order, e.turn)
		k.jobs = slices.Insert(k.jobs, i, e)
		if i == 0 {
			e.lane.reorder()
		}
		e.bucket = k
	}
	e.taskCounts = taskCountsOf(e.job)
	k.forced, k.recheck = false, false
	k.version, k.known, k.home = b.view.Version(), knownOf(b.view), homeOf(b.view, e.job)
	b.listForWaking(k, e.job, r)
	k.parked = refusedAgain(k.parked, b.now, !r.Permanent || r.Surplus) // running tasks may be placed differently later, so surplus is retried even after a permanent refusal
	if r.Delayed > b.now && k.parked.RetryAt > r.Delayed {
		k.parked.RetryAt = r.Delayed // from then on the job may evict others
	}
	r.Retry = k.parked.RetryAt
	b.start(k)
	return k
}

// listForWaking lists the bucket under everything that may help its jobs when it changes: the
// shapes that they request, the queues that block them, and the hints of plugins.
func (b *backlog) listForWaking(k *bucket, job *cluster.Job, r *Refusal) {
	k.lane.unlist(k)
	b.unblock(k)
	k.permanent, k.before, k.examineAlways, k.wakes = r.Permanent, false, false, 0
	for i := range r.Attempts {
		for _, g := range r.Attempts[i].Groups {
			if g.Rejection != nil && g.Rejection.Queue != "" {
				k.before = true
				b.block(k, g.Rejection.Queue)
			}
		}
		switch a := &r.Attempts[i]; {
		case a.Before == nil:
		case a.Before.Queue == "" || a.Placed > 0: // the rejection depends on more than the queue
			k.before = true
			k.heed(b.finder.hooks.hints.wakes(a.Before.Plugin))
		default:
			k.before = true
			b.block(k, a.Before.Queue)
		}
	}
	openShapes(job, func(t *cluster.Task) bool {
		filters, _, _ := b.finder.taskHooks(t)
		for i := range filters {
			k.heed(b.finder.hooks.hints.wakes(filters[i].plugin))
		}
		for i := range b.finder.hooks.reservers {
			if h := &b.finder.hooks.reservers[i]; h.profiles.decideShape(t.Shape) && (h.tasks == nil || h.tasks(t, job)) {
				k.heed(b.finder.hooks.hints.wakes(h.plugin))
			}
		}
		k.asks = append(k.asks, b.ask(t))
		return true
	})
	k.lane.list(k)
}

// waits reports whether the bucket is checked in every session, because what may help it is
// not listed anywhere. At its turn, the session finds out whether something changed.
func (k *bucket) waits() bool { return k.examineAlways || k.wakes != 0 }

// heed adds the kinds of changes after which the bucket is tried again.
func (k *bucket) heed(w Wake) {
	k.examineAlways = k.examineAlways || w&WakeNodes != 0
	k.wakes |= w &^ WakeNodes
}

// block lists the bucket under a queue that blocks it by its limit or share.
func (b *backlog) block(k *bucket, queue string) {
	if !slices.Contains(k.blockers, queue) {
		k.blockers = append(k.blockers, queue)
		b.blocked[queue] = append(b.blocked[queue], k)
	}
}
