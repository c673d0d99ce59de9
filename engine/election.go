package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// The goal of a lane is its first job that is to be tried. In most lanes parked jobs come
// before it, which nothing has helped. They are not tried, but each holds its place: the
// lane comes to its next job only when its bid with the present one is the lowest of all
// lanes. So a lane comes to its goal once its highest bid up to the goal, the dearest, is
// the lowest of all, and of two lanes the one whose dearest bid is lower comes to its goal
// first. Where all queues in line are siblings, an election compares these bids instead of
// giving each job its turn.

// maxElections is how many there are in a session before queues are put into heaps: one
// compares all queues that are in line.
const maxElections = 16

// elects reports whether the next job is found by election: a queue that is alone has
// none to be compared with.
func (t *turns) elects() bool {
	return t.flat && !t.piled && t.elections < maxElections && len(t.leaves) > 1
}

// mayElect reports whether elections decide the same as giving each job its turn, and
// are not themselves what is to be checked.
func (o *order) mayElect() bool {
	return o.search == Indexed && o.branched() && o.freezes()
}

// elected is the first job that is to be tried; nil: there is none, or it is no longer
// found by election.
func (t *turns) elected() *cluster.Job {
	for t.order.fault.err == nil && t.elects() {
		t.elections++
		t.known = t.order.view.Recent().QueuesVersion()
		if c := t.last; c != nil {
			t.last, c.first = nil, c.line.head()
		}
		c, dear := t.findElected()
		if c == nil {
			return nil
		}
		t.levels = append(t.levels, t.order.freeze(Bid{c.queue, dear}))
		c.won = len(t.levels)
		job, try := c.line.next(true)
		if t.last = c; try {
			return job
		}
	}
	return nil
}

// poll finds the lane that comes to its goal first, and its dearest bid up to there.
func (t *turns) findElected() (first *contender, dear *cluster.Job) {
	var least func(Bid) int // compares the lowest bid so far with others; nil: there is none
	for _, c := range t.leaves {
		if c.first == nil {
			continue
		}
		l := c.line.(*lane)
		if least != nil {
			bid := c.bid()
			if l.guardHolds() {
				bid.Job = l.guard
			}
			if least(bid) < 0 {
				continue
			}
		}
		if e := l.highestBid(least); e != nil {
			first, dear, least = c, e.job, t.order.freeze(Bid{c.queue, e.job})
		}
	}
	return first, dear
}

// dearest is the job with the dearest bid up to the goal of the lane; nil: it has none,
// or one of these bids is above that of another queue. All jobs of a bucket bid alike, so
// that the first stands for all.
func (l *lane) highestBid(least func(Bid) int) *waiter {
	l.callFresh()
	goal := l.firstToTry()
	if goal == nil {
		return nil
	}
	o := l.backlog.order
	tooDear := func(e *waiter) bool { return least != nil && least(Bid{l.queue, e.job}) < 0 }
	if tooDear(goal) {
		return nil
	}
	dear := goal
	for _, k := range l.buckets { // in any order: the dearest is sought
		e := l.firstBefore(k, goal)
		if e == nil {
			continue
		}
		if tooDear(e) {
			l.setGuard(e)
			return nil
		}
		if o.siblings(Bid{l.queue, dear.job}, Bid{l.queue, e.job}) < 0 {
			dear = e
		}
	}
	l.setGuard(dear)
	return dear
}

// post remembers a job that comes before the goal of the lane, or is the goal, for
// elections to come: if its bid is too dear, the lane need not be looked into.
func (l *lane) setGuard(e *waiter) {
	if b := l.backlog; l.cursor.job == nil && !l.sure && (b.evicts || slices.Equal(b.marks, b.since)) {
		if !slices.Equal(b.guardShapes, b.since) {
			b.guardShapes = slices.Clone(b.since)
		}
		l.guard, l.guardShapes = e.job, b.guardShapes // which most lanes share
	}
}

// guarded reports whether the guard still comes before the goal of the lane, or is the
// goal: the session has found the same shapes that nodes take, and the first jobs of all
// buckets are the same.
func (l *lane) guardHolds() bool {
	return l.guard != nil && l.cursor.job == nil && !l.sure && slices.Equal(l.guardShapes, l.backlog.since)
}

// before is the bucket's first job whose turn is still to come, where that is before
// another; nil: there is none.
func (l *lane) firstBefore(k *bucket, other *waiter) *waiter {
	if e := l.after(k); e != nil && l.backlog.compareWaiters(e, other) < 0 {
		return e
	}
	return nil
}

// advance gives all jobs their turn that elections left out: in each lane those that bid
// less than a lane which was elected since the lane won or joined. The bids of lanes that
// did not win are what they were. Those of the elected are not, so they are frozen.
func (t *turns) advance() {
	if len(t.levels) == 0 {
		return
	}
	for i := len(t.leaves) - 1; i >= 0; i-- { // one that leaves has the last take its place
		if c := t.leaves[i]; c != t.last && c.first != nil && t.hadTurn(c, c.first) {
			c.line.(*lane).advance(t, c)
		}
	}
	for _, c := range t.leaves {
		c.won = 0
	}
	clear(t.levels)
	t.levels = t.levels[:0]
}

// behind reports whether the job had its turn before one of the elected.
func (t *turns) hadTurn(c *contender, job *cluster.Job) bool {
	return slices.ContainsFunc(t.levels[c.won:], func(level func(Bid) int) bool { return level(Bid{c.queue, job}) > 0 })
}

// advance gives the jobs of the lane their turn that come before one of the elected.
func (l *lane) advance(t *turns, c *contender) {
	l.callFresh()
	goal := l.firstToTry()
	if goal == nil {
		l.endTurn()
		t.leave(c)
		return
	}
	next := goal
	for _, k := range l.buckets { // in any order: the first is sought
		if e := l.firstBefore(k, next); e != nil && !t.hadTurn(c, e.job) {
			next = e
		}
	}
	l.cursor, l.cursorDone, c.first = next.turn, false, next.job
}
