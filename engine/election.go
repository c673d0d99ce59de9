package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// The goal of a lane is its first job that is to be tried. In most lanes, parked jobs that
// no change may have helped come before it. They are not tried, but they keep their places:
// a lane passes to its next job only when its bid with the present job is the lowest of all
// lanes. The lane that reaches its goal first is therefore found in two steps: for each lane,
// the highest of its bids up to and including the goal is computed; then the lane with the
// lowest of these highest bids is elected. If all queues in line are siblings, an election
// makes this comparison instead of giving each parked job its turn.
//
// For example, queue a has a parked job with the bid 3, a parked job with the bid 5, and its
// goal with the bid 2. Queue b has a parked job with the bid 4, and its goal with the bid 1.
// With turns, a passes its job with 3, because 3 is lower than 4. Then b passes its job with
// 4, because 4 is lower than 5, and its goal, with the bid 1, is tried first. The highest
// bids are 5 for a and 4 for b, so that the election of b has the same result.

// maxElections is how many elections a session makes before it puts queues into heaps. An
// election compares all queues that are in line, and a heap only a few of them.
const maxElections = 16

// elects reports whether the next job is found by an election. A single queue needs none.
func (t *turns) elects() bool {
	return t.flat && !t.inHeaps && t.elections < maxElections && (len(t.leaves) > 1 || t.ranked.lanes != nil)
}

// mayElect reports whether elections may be used: the hooks must be able to compare frozen
// bids, and the session must not be one that checks elections against turns.
func (o *order) mayElect() bool {
	return o.search == Indexed && o.branched() && o.freezes()
}

// elected returns the next job to be tried, found by an election. It returns nil if there is
// none, or if elections may no longer be used.
func (t *turns) elected() *cluster.Job {
	for t.order.fault.err == nil && t.elects() {
		t.elections++
		t.known = t.order.view.Recent().QueuesVersion()
		if c := t.last; c != nil {
			t.last, c.first = nil, c.line.head()
		}
		c, highest := t.findElected()
		if c == nil {
			return nil
		}
		t.levels = append(t.levels, t.order.freeze(Bid{c.queue, highest}))
		c.won = len(t.levels)
		job, try := c.line.next(true)
		if t.last = c; try {
			return job
		}
	}
	return nil
}

// findElected returns the lane that reaches its goal first, and the job of its highest bid up
// to the goal.
func (t *turns) findElected() (first *contender, highest *cluster.Job) {
	var least func(Bid) int // compares the lowest of the highest bids so far with another bid; nil if there is none
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
			first, highest, least = c, e.job, t.order.freeze(Bid{c.queue, e.job})
		}
	}
	return t.electRanked(first, highest, least)
}

// highestBid returns the job with the highest bid up to the goal of the lane. It returns nil
// if the lane has no goal, or if one of its bids is above the lowest that another queue has.
// All jobs of a bucket have equal bids, so only the first of each is compared.
func (l *lane) highestBid(least func(Bid) int) *waiter {
	l.putFreshInLine()
	goal := l.firstToTry()
	if goal == nil {
		return nil
	}
	o := l.backlog.order
	tooHigh := func(e *waiter) bool { return least != nil && least(Bid{l.queue, e.job}) < 0 }
	if tooHigh(goal) {
		return nil
	}
	highest := goal
	for _, k := range l.buckets { // the order of the map does not matter for a maximum
		e := l.firstBefore(k, goal)
		if e == nil {
			continue
		}
		if tooHigh(e) {
			l.setGuard(e)
			return nil
		}
		if o.siblings(Bid{l.queue, highest.job}, Bid{l.queue, e.job}) < 0 {
			highest = e
		}
	}
	l.setGuard(highest)
	return highest
}

// setGuard remembers a job that is the goal of the lane or comes before it. If its bid is
// too high in a later election, that election skips the lane without computing its highest
// bid.
func (l *lane) setGuard(e *waiter) {
	if b := l.backlog; l.cursor.job == nil && !l.joined && (b.evicts || slices.Equal(b.stillFreshIDs, b.freshIDs)) {
		if !slices.Equal(b.guardShapes, b.freshIDs) {
			b.guardShapes = slices.Clone(b.freshIDs)
		}
		l.guard, l.guardShapes = e.job, b.guardShapes // most lanes share one copy
	}
}

// guardHolds reports whether the guard is still the goal of the lane or comes before it.
// That is so while the same shapes are fresh and the first jobs of the buckets are the same.
func (l *lane) guardHolds() bool {
	return l.guard != nil && l.cursor.job == nil && !l.joined && slices.Equal(l.guardShapes, l.backlog.freshIDs)
}

// firstBefore returns the first job of the bucket that has not had its turn, if its turn is
// before that of the other job, and nil otherwise.
func (l *lane) firstBefore(k *bucket, other *waiter) *waiter {
	if e := l.after(k); e != nil && l.backlog.compareWaiters(e, other) < 0 {
		return e
	}
	return nil
}

// advance gives their turns to the jobs that elections skipped: in each lane, the jobs
// with a bid below that of a lane that was elected since the lane itself was elected or joined.
// The bids of lanes that were not elected have not changed since. The bids of elected lanes
// have, so they were frozen at the time of the election.
func (t *turns) advance() {
	t.addAllRanked()
	if len(t.levels) == 0 {
		return
	}
	for i := len(t.leaves) - 1; i >= 0; i-- { // backwards, since a leaf that is removed is replaced by the last
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

// hadTurn reports whether the job's turn was before that of an elected lane.
func (t *turns) hadTurn(c *contender, job *cluster.Job) bool {
	return slices.ContainsFunc(t.levels[c.won:], func(level func(Bid) int) bool { return level(Bid{c.queue, job}) > 0 })
}

// advance gives their turns to the jobs of the lane that come before an elected lane.
func (l *lane) advance(t *turns, c *contender) {
	l.putFreshInLine()
	goal := l.firstToTry()
	if goal == nil {
		l.endTurn()
		t.removeQueue(c)
		return
	}
	next := goal
	for _, k := range l.buckets { // the order of the map does not matter for a minimum
		if e := l.firstBefore(k, next); e != nil && !t.hadTurn(c, e.job) {
			next = e
		}
	}
	l.cursor, l.cursorDone, c.first = next.turn, false, next.job
}
