package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// What wakes a bucket. A change that may help puts its first job in line, and at
// its turn helped decides by how things stand then whether it is tried:
//
//   - The terms of queues or budgets changed, or parameters that a plugin
//     published: all are tried.
//   - The time of its back-off has come. Whether others may be evicted depends on
//     time, on shares and on what budgets count: that is left to this.
//   - Where the tasks of its set belong has changed, or a node that its own tasks
//     are on.
//   - A node has room that it had not, and takes one of its shapes.
//   - A queue whose bound was in its way uses more or less than before.
//   - Where a filter looks at more than the shape and the node: any node changed or,
//     where its plugin gave a hint, something changed that the hint names.
//
// A job whose own tasks stand otherwise than before is in no bucket: it is tried.

// wake calls the buckets that changes since the last session may help. Moved are the
// sets whose jobs changed.
func (b *backlog) wake(moved map[string]bool) {
	if b.revision != b.view.Recent().Terms() || b.epoch != b.finder.index.epoch {
		b.eachBucket(func(k *bucket) { b.queueForTrial(k) })
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
			if e := b.waiters[t.Job.Slot()]; e != nil && e.bucket != nil {
				b.queueForTrial(e.bucket) // it may be in another domain now
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
		if l == nil || l.loose == 0 {
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

// wakeForDevices calls the buckets that bounds of queues were in the way of, where
// the cluster has other kinds of devices than before: what tasks cost depends on
// them.
func (b *backlog) wakeForDevices() {
	kinds := b.view.Kinds()
	if len(kinds) == len(b.kinds) && (len(kinds) == 0 || &kinds[0] == &b.kinds[0]) {
		return // the State makes a new list for each change
	}
	b.kinds = kinds
	for _, list := range b.blocked {
		for _, k := range list {
			b.queueForCheck(k)
		}
	}
}

// queueForTrial has the bucket's first job be tried.
func (b *backlog) queueForTrial(k *bucket) {
	k.forced = true
	b.queueForCheck(k)
}

// queueForCheck has the bucket be looked at when its turn comes.
func (b *backlog) queueForCheck(k *bucket) {
	k.lane.call(k)
	b.assure(k.lane)
}

// wakeForQueues calls the buckets that are blocked by a queue which changed after
// the version.
func (b *backlog) wakeForQueues(since uint64) {
	b.view.Recent().Queues(since, func(q *cluster.Queue) {
		for _, k := range b.blocked[q.Name] {
			b.queueForCheck(k)
		}
	})
}

// findNewRoom finds the shapes that some node takes which has room it did not
// have before, and visits the nodes that are not what they were.
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

// addFresh notes that the node takes the shape.
func (b *backlog) addFresh(a *asked, slot int) {
	if len(a.fresh) == 0 {
		b.fresh = append(b.fresh, a)
		b.marks.set(a.id)
		b.since.set(a.id)
		b.live++
	}
	a.fresh = append(a.fresh, slot)
}

// accepts reports whether the node takes the shape, or may do so later where that
// is news. What is plain to see from the ledgers is looked at first.
func (b *backlog) accepts(a *asked, n *cluster.Node) bool {
	if a.permanent == 0 && n.Lacks(a.task.Shape) {
		return false
	}
	r, _ := b.finder.rejectAt(nil, a.task, n)
	return r == nil || a.permanent > 0 && r.Cure.Transient()
}

// beginTurns puts those in line whose turn comes.
func (b *backlog) beginTurns() {
	b.evicts = len(b.order.hooks.adapters) > 0 && b.view.Classes().Preemptible() > 0
	b.turns.disperse()
	for _, l := range b.sure {
		slices.SortFunc(l.arrivals, b.compareWaiters)
	}
	joining := append(b.joining[:0], b.sure...)
	if b.live > 0 {
		for _, l := range b.lanes {
			if l != nil && !l.sure && l.shapes.meets(b.marks) {
				joining = append(joining, l)
			}
		}
	}
	b.joining = append(joining, b.heldLanes(joining)...)
	b.putInLine(b.joining)
}

// heldLanes are the lanes that have nothing to be tried, and hold a place in line all the
// same: where branches part, a queue above them and one of those that join stands with
// the job of the one that comes first.
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

// next is the job whose turn it is. Where fresh room is taken by now, the lanes that
// are in line for it alone are not asked one by one.
func (b *backlog) next() *cluster.Job {
	if b.live == 0 && b.waiting == 0 {
		return nil
	}
	return b.turns.next()
}

// afterCommit takes in what a decision changed: room that is taken now, and room
// that evictions left.
func (b *backlog) afterCommit(evicted bool) {
	for _, a := range b.fresh {
		if len(a.fresh) == 0 {
			continue
		}
		a.fresh = slices.DeleteFunc(a.fresh, func(slot int) bool { return !b.accepts(a, b.view.At(slot)) })
		if len(a.fresh) == 0 {
			b.marks.unset(a.id)
			b.live--
		}
	}
	if !evicted {
		return
	}
	queues := b.turns.known
	b.findNewRoom(func(*cluster.Node) {})
	b.wakeForQueues(queues)
	var late []*lane
	for _, l := range b.lanes {
		if l == nil {
			continue
		}
		c := b.turns.contender(l.queue)
		if c.place < 0 && !l.passed && (l.sure || l.shapes.meets(b.marks)) {
			late = append(late, l)
		}
		l.gathered = 0
	}
	b.putInLine(late)
}

// markPassed notes which lanes had their turn before the job: changes from now on help
// them in the next session.
func (b *backlog) markPassed(job *cluster.Job) {
	b.turns.advance()
	compare := b.order.compareWith(Bid{b.view.Queue(job.Queue), job})
	for _, l := range b.lanes {
		if l == nil || l.passed || b.turns.contender(l.queue).place >= 0 {
			continue
		}
		if head := l.head(); head != nil && compare(Bid{l.queue, head}) > 0 {
			l.passed = true
			b.inLine = append(b.inLine, l)
		}
	}
}
