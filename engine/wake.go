package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// This file decides which buckets of parked jobs are woken. A change that may help puts the
// first job of a bucket in line. When that job has its turn, bucket.helped decides by the State
// at that time whether the job is tried. These changes wake a bucket:
//
//   - The specs of queues or budgets changed, or a plugin published other parameters: all
//     buckets are tried.
//   - The back-off of the bucket is over. Whether other tasks may be evicted depends on
//     time, on fair shares and on budgets, which are not watched: only the back-off makes
//     sure that evictions are tried again.
//   - The node group of its set changed, or a node that has tasks of its jobs changed its spec.
//   - A node has room that it did not have, and accepts one of the bucket's shapes.
//   - A queue that blocked the bucket by its limit or share uses more or less than before.
//   - It has jobs of several tasks, and a plugin has learnt other parameters of scores.
//   - If a filter looks at more than the shape and the node: any node changed or, if the
//     plugin gave a hint, something changed that the hint names.
//
// If the status of a job's own tasks changes, the job is taken out of its bucket and is tried.

// wake puts the buckets in line that changes since the last session may help. moved has the
// sets of which jobs changed.
func (b *backlog) wake(moved map[string]bool) {
	if b.revision != b.view.Recent().QueueSpecsVersion() || b.epoch != b.finder.index.epoch {
		b.eachBucket(func(k *bucket) { b.queueForTrial(k) })
	} else if b.scoreEpoch != b.finder.index.scoreEpoch {
		b.eachBucket(func(k *bucket) {
			if len(k.jobs) > 0 && len(k.jobs[0].job.Tasks()) > 1 {
				b.queueForTrial(k) // with other scores, its first tasks may leave room for the others
			}
		})
	}
	for len(b.timers.Items) > 0 && isDue(b.timers.Items[0].parked, b.now) {
		k := b.timers.Items[0]
		b.stop(k)
		b.queueForTrial(k)
	}
	b.seen = b.nodes
	b.findNewRoom(func(n *cluster.Node) {
		for _, t := range n.Tasks {
			if t.Job.Set.Name != "" {
				moved[t.Job.Set.Name] = true
			}
			if e := b.waiters.At(t.Job.Slot()); e != nil && e.bucket != nil {
				b.queueForTrial(e.bucket) // the tasks of the job may be in another domain now
			}
		}
	})
	for name := range moved {
		for _, k := range b.replica[name] {
			if k.home != homeOf(b.view, k.jobs[0].job) {
				b.queueForTrial(k)
			}
		}
	}
	b.wakeForQueues(b.queues)
	b.wakeForDevices()
	for _, l := range b.lanes {
		if l == nil || l.alwaysExamined == 0 {
			continue
		}
		for _, k := range l.buckets {
			if k.waits() {
				b.queueForCheck(k)
			}
		}
	}
}

// eachBucket visits all buckets.
func (b *backlog) eachBucket(visit func(*bucket)) {
	for _, l := range b.lanes {
		if l == nil {
			continue
		}
		for _, k := range l.buckets {
			visit(k)
		}
	}
}

// wakeForDevices wakes the buckets that limits or shares of queues blocked if the kinds of
// devices in the cluster changed, because what tasks are charged depends on these kinds.
func (b *backlog) wakeForDevices() {
	kinds := b.view.Kinds()
	if len(kinds) == len(b.kinds) && (len(kinds) == 0 || &kinds[0] == &b.kinds[0]) {
		return // the State makes a new list whenever the kinds change
	}
	b.kinds = kinds
	for _, list := range b.blocked {
		for _, k := range list {
			b.queueForCheck(k)
		}
	}
}

// queueForTrial puts the bucket in line so that its first job is tried in any case.
func (b *backlog) queueForTrial(k *bucket) {
	k.forced = true
	b.queueForCheck(k)
}

// queueForCheck puts the bucket in line. At its turn, bucket.helped decides whether its first
// job is tried.
func (b *backlog) queueForCheck(k *bucket) {
	k.lane.putInLine(k)
	b.joinLine(k.lane)
}

// wakeForQueues wakes the buckets that are blocked by a queue that changed after the version.
func (b *backlog) wakeForQueues(since uint64) {
	b.view.Recent().Queues(since, func(q *cluster.Queue) {
		for _, k := range b.blocked[q.Name] {
			b.queueForCheck(k)
		}
	})
}

// findNewRoom finds, for each shape that parked jobs request, the nodes that have new room and
// accept the shape. It calls anew for each node with a changed spec.
func (b *backlog) findNewRoom(anew func(*cluster.Node)) {
	since := b.seen
	b.view.Recent().Nodes(since, func(slot int) {
		n := b.view.At(slot)
		if n == nil {
			return
		}
		if n.SpecVersion() > since {
			anew(n)
		}
		if n.Freed() <= since {
			return
		}
		for _, a := range b.asked {
			if b.accepts(a, n) {
				b.addFresh(a, slot)
			}
		}
	})
	b.seen = b.view.Version()
}

// addFresh notes that the node in the slot has new room and accepts the shape.
func (b *backlog) addFresh(a *asked, slot int) {
	if len(a.freshNodes) == 0 {
		b.freshShapes = append(b.freshShapes, a)
		b.stillFreshIDs.set(a.id)
		b.freshIDs.set(a.id)
		b.stillFreshCount++
	}
	a.freshNodes = append(a.freshNodes, slot)
}

// accepts reports whether the node accepts the shape. If jobs with this shape were refused
// permanently, it is enough that the node may accept the shape later. The ledgers of the node
// are read first, which is faster than calling the filters.
func (b *backlog) accepts(a *asked, n *cluster.Node) bool {
	if a.permanent == 0 && n.Lacks(a.task.Shape) {
		return false
	}
	r, _ := b.finder.rejectAt(nil, a.task, n)
	return r == nil || a.permanent > 0 && r.Cure.Transient()
}

// beginTurns puts the lanes in line that have jobs to be tried.
func (b *backlog) beginTurns() {
	b.evicts = len(b.order.hooks.adapters) > 0 && b.view.Classes().Preemptible() > 0
	b.turns.clear()
	for _, l := range b.joined {
		slices.SortFunc(l.arrivals, b.compareWaiters)
	}
	joining := append(b.joining[:0], b.joined...)
	ranked := b.stillFreshCount > 0 && b.byBid.update(b) && !slices.ContainsFunc(joining, func(l *lane) bool { return b.turns.contender(l.queue).depth > 0 })
	if b.stillFreshCount > 0 && !ranked {
		for _, l := range b.lanes {
			if l != nil && !l.joined && l.shapes.meets(b.stillFreshIDs) {
				joining = append(joining, l)
			}
		}
	}
	b.joining = append(joining, b.heldLanes(joining)...)
	b.putInLine(b.joining)
	if ranked {
		b.turns.ranked = rankedLanes{b.byBid.lanes, slices.Clone(b.stillFreshIDs)}
	}
}

// heldLanes returns lanes that have no job to be tried, but must be in line: a queue above them
// is also above one of the joining lanes. That queue is compared with the first job of all its
// lanes, and a parked job may be that first job.
func (b *backlog) heldLanes(joining []*lane) (out []*lane) {
	if len(joining) < 2 {
		return nil
	}
	above := map[*contender]bool{}
	for _, l := range joining {
		for c := b.turns.contender(l.queue).above; c.depth >= 0 && !above[c]; c = c.above {
			above[c] = true
		}
	}
	if len(above) == 0 {
		return nil
	}
	joined := map[*lane]bool{}
	for _, l := range joining {
		joined[l] = true
	}
	for _, l := range b.lanes {
		if l == nil || joined[l] {
			continue
		}
		c := b.turns.contender(l.queue).above
		for c.depth >= 0 && !above[c] {
			c = c.above
		}
		if c.depth >= 0 && l.head() != nil {
			out = append(out, l)
		}
	}
	return out
}

// putInLine puts lanes in line.
func (b *backlog) putInLine(lanes []*lane) {
	b.inLine = append(b.inLine, lanes...)
	for _, l := range lanes {
		b.turns.addQueue(l.queue, l)
	}
}

// next returns the job that has the next turn; nil if none is left. Once all new room is taken
// and no other job is to be tried, it returns nil without looking at the lanes that are in line
// for new room alone.
func (b *backlog) next() *cluster.Job {
	if b.stillFreshCount == 0 && b.waiting == 0 {
		return nil
	}
	if l, alone := b.turns.onlyLine().(*lane); alone && !l.hasJobToTry() {
		return nil
	}
	return b.turns.next()
}

// afterCommit updates the line after a decision: new room may be taken now, and evictions may
// have made more.
func (b *backlog) afterCommit(evicted bool) {
	for _, a := range b.freshShapes {
		if len(a.freshNodes) == 0 {
			continue
		}
		a.freshNodes = slices.DeleteFunc(a.freshNodes, func(slot int) bool { return !b.accepts(a, b.view.At(slot)) })
		if len(a.freshNodes) == 0 {
			b.stillFreshIDs.unset(a.id)
			b.stillFreshCount--
		}
	}
	if !evicted {
		return
	}
	queues := b.turns.known
	b.findNewRoom(func(*cluster.Node) {})
	b.wakeForQueues(queues)
	for _, l := range b.inLine {
		l.freshExamined = 0
	}
	lanes := b.joined
	if b.stillFreshCount > 0 {
		lanes = b.lanes
	}
	var late []*lane
	for _, l := range lanes {
		if l == nil || b.turns.contender(l.queue).place >= 0 || !l.joined && !l.shapes.meets(b.stillFreshIDs) {
			continue
		}
		if b.markRanked(); !l.passed {
			late = append(late, l)
		}
	}
	b.putInLine(late)
}

// markPassed marks the lanes that come before the job of the last search for room and are not
// in line as passed. Changes from now on wake their buckets in the next session, not in this
// one. Its result matters only if tasks are evicted later in the session. So it is called
// before a plan is carried out, before a search evicts a victim that may stay evicted, and before
// another job has its turn. Until it is called, no decision may be committed.
//
// It may leave lanes in passedRanked instead of marking them. So lane.passed must not be read
// for lanes that are not in line before markRanked was called.
func (b *backlog) markPassed() {
	job := b.searching
	if job == nil {
		return
	}
	b.searching = nil
	b.markRanked()
	b.turns.advance()
	bid := Bid{b.view.Queue(job.Queue), job}
	lanes := b.lanes
	if len(b.inLine) <= maxUnranked && b.byBid.update(b) {
		lanes = b.inLine // all other lanes have no arrivals and no cursor, so that their first parked job is the head
		b.passedRanked = append(b.passedRanked[:0], b.byBid.before(b.order.freeze(bid))...)
		b.unranked = append(b.unranked[:0], b.inLine...)
	}
	compare := b.order.compareWith(bid)
	for _, l := range lanes {
		if l == nil || l.passed || b.turns.contender(l.queue).place >= 0 {
			continue
		}
		if head := l.head(); head != nil && compare(Bid{l.queue, head}) > 0 {
			l.passed = true
			b.inLine = append(b.inLine, l)
		}
	}
}

// maxUnranked is how many lanes may have been in line before markPassed compares all lanes.
const maxUnranked = 64

// markRanked marks the lanes that markPassed found by the order of their bids. In most
// sessions no lane has to be examined after an eviction, and this is not necessary.
func (b *backlog) markRanked() {
	for _, l := range b.passedRanked {
		if !l.passed && !slices.Contains(b.unranked, l) {
			l.passed = true
			b.inLine = append(b.inLine, l)
		}
	}
	b.passedRanked = b.passedRanked[:0]
}
