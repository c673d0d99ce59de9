package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// laneOrder keeps the lanes of the backlog in the order of the bids of their first parked jobs,
// from session to session. An election compares lanes in this order and stops at the first
// lane that cannot win any more, so that most lanes are neither compared nor put in line.
//
// It can be used if all queues with lanes are at the top of the tree, and if the plugins that
// compare queues say which bids have changed since the last session (see AddBidChanges).
type laneOrder struct {
	lanes    []*lane // lanes with parked jobs, the lowest bid first
	stale    []*lane // lanes whose first parked job or bid has changed since
	flat     bool    // all queues with lanes are at the top of the tree
	dropped  uint64  // the last session in which most bids had changed
	revision uint64  // the version of the specs of queues as of which lanes was built; 0 if it was not built
}

// markStale notes that the lane may have another place in the order.
func (r *laneOrder) markStale(l *lane) {
	if !l.stale {
		l.stale = true
		r.stale = append(r.stale, l)
	}
}

// update brings the order up to date, and reports whether it can be used.
func (r *laneOrder) update(b *backlog) bool {
	if r.dropped == b.sessions && b.sessions > 0 {
		return false
	}
	if !b.order.mayRank() {
		r.revision = 0
		return false
	}
	changed, all := b.order.changedBids()
	if all || len(changed) > 2+len(b.lanes)/8 {
		// Most bids change from session to session, as past use does. An order that is used in
		// one session only costs more than an election without one.
		r.revision, r.dropped = 0, b.sessions
		return false
	}
	for _, q := range changed {
		if q.Slot() < len(b.lanes) && b.lanes[q.Slot()] != nil {
			r.markStale(b.lanes[q.Slot()])
		}
	}
	if revision := b.view.Recent().QueueSpecsVersion(); r.revision != revision || len(r.stale) > 2+len(r.lanes)/8 {
		r.revision = revision
		r.build(b)
	} else {
		r.moveStale(b)
	}
	for _, l := range r.stale {
		l.stale = false
	}
	clear(r.stale)
	r.stale = r.stale[:0]
	return r.flat
}

// build orders all lanes.
func (r *laneOrder) build(b *backlog) {
	r.lanes, r.flat = r.lanes[:0], true
	for _, l := range b.lanes {
		if l == nil {
			continue
		}
		r.flat = r.flat && b.turns.contender(l.queue).depth == 0
		if l.firstParked() != nil {
			r.lanes = append(r.lanes, l)
		}
	}
	if r.flat {
		slices.SortFunc(r.lanes, b.order.compareFirstParked)
	}
}

// moveStale moves the stale lanes to their places. Most of them have the place that they had,
// because what changed was undone. So they are removed first and then inserted in reverse
// order, each at its former place if that is right.
func (r *laneOrder) moveStale(b *backlog) {
	places := make([]int, len(r.stale))
	for i, l := range r.stale {
		if places[i] = slices.Index(r.lanes, l); places[i] >= 0 {
			r.lanes = slices.Delete(r.lanes, places[i], places[i]+1)
		}
	}
	for i := len(r.stale) - 1; i >= 0; i-- {
		r.insert(b, r.stale[i], places[i])
	}
}

// insert puts the lane at its place in the order, if it has parked jobs. The given place is
// tried first, unless it is negative.
func (r *laneOrder) insert(b *backlog, l *lane, place int) {
	r.flat = r.flat && b.turns.contender(l.queue).depth == 0
	if l.firstParked() == nil || !r.flat {
		return
	}
	compare := b.order.compareFirstParked
	if place < 0 || place > len(r.lanes) || place > 0 && compare(r.lanes[place-1], l) > 0 || place < len(r.lanes) && compare(l, r.lanes[place]) > 0 {
		place, _ = slices.BinarySearchFunc(r.lanes, l, compare)
	}
	r.lanes = slices.Insert(r.lanes, place, l)
}

// before returns the lanes with a bid that comes before the one that the function compares with.
// The order must be up to date (see update).
func (r *laneOrder) before(compare func(Bid) int) []*lane {
	end, _ := slices.BinarySearchFunc(r.lanes, 0, func(l *lane, _ int) int {
		if compare(Bid{l.queue, l.parkedFirstJob}) > 0 {
			return -1
		}
		return 1
	})
	return r.lanes[:end]
}

// compareFirstParked compares the bids of two lanes with their first parked jobs.
func (o *order) compareFirstParked(a, b *lane) int {
	return o.siblings(Bid{a.queue, a.parkedFirstJob}, Bid{b.queue, b.parkedFirstJob})
}

// mayRank reports whether the order of bids can be kept from session to session.
func (o *order) mayRank() bool {
	return o.mayElect() && !slices.ContainsFunc(o.hooks.queueOrders, func(h hook[SiblingOrder]) bool { return h.changes == nil })
}

// changedBids returns the queues whose bids may have changed since the last call, by the
// BidChanges of all comparisons.
func (o *order) changedBids() (queues []*cluster.Queue, all bool) {
	for i := range o.hooks.queueOrders {
		some, every := o.hooks.queueOrders[i].changes()
		queues, all = append(queues, some...), all || every
	}
	return queues, all
}

// rankedLanes are lanes that are in line without being in turns.leaves. An election puts a
// lane among the leaves before it examines the lane's jobs.
type rankedLanes struct {
	lanes  []*lane // in their order; nil if there are none
	shapes bitset  // a lane is in line if one of its parked jobs requests one of these shapes
}

// inLine reports whether the lane is one of these lanes.
func (r *rankedLanes) inLine(l *lane) bool {
	return !l.passed && l.backlog.turns.contender(l.queue).place < 0 && l.shapes.meets(r.shapes)
}

// electRanked continues an election with the ranked lanes, given the lowest of the highest
// bids of the leaves. It returns what findElected returns.
func (t *turns) electRanked(first *contender, highest *cluster.Job, least func(Bid) int) (*contender, *cluster.Job) {
	for _, l := range t.ranked.lanes {
		if !t.ranked.inLine(l) {
			continue
		}
		if least != nil {
			if least(Bid{l.queue, l.parkedFirstJob}) < 0 {
				break // neither this lane nor any lane after it can win
			}
			if l.guardHolds() && least(Bid{l.queue, l.guard}) < 0 {
				continue
			}
		}
		c := t.addRanked(l)
		if e := l.highestBid(least); e != nil {
			first, highest, least = c, e.job, t.order.freeze(Bid{c.queue, e.job})
		}
	}
	return first, highest
}

// addRanked puts a ranked lane among the leaves.
func (t *turns) addRanked(l *lane) *contender {
	l.backlog.inLine = append(l.backlog.inLine, l)
	t.addQueue(l.queue, l)
	c := t.contender(l.queue)
	c.won = 0 // it has been in line since the beginning of the session
	return c
}

// addAllRanked puts all ranked lanes among the leaves, because they must be compared in another
// way than by an election.
func (t *turns) addAllRanked() {
	lanes := t.ranked.lanes
	for _, l := range lanes {
		if t.ranked.inLine(l) {
			t.addRanked(l)
		}
	}
	t.ranked = rankedLanes{}
}
