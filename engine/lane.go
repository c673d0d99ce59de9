package engine

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/heap"
)

// lane is the backlog of one queue.
type lane struct {
	backlog *backlog
	queue   *cluster.Queue

	arrivals []*waiter // to be tried, whatever changed
	buckets  map[string]*bucket
	byShape  map[*asked][]*bucket
	shapes   bitset // of asks
	loose    int    // buckets that are looked at in every session

	// The first that is parked, kept from session to session, and its job.
	parkedFirst      *waiter
	parkedFirstJob   *cluster.Job
	parkedFirstKnown bool
	guard            *cluster.Job // see post; nil: none is known
	guardShapes      bitset       // backlog.since when the guard was set; it never changes

	// While a session runs:
	called     heap.Heap[*bucket] // that something may have helped, in the order of the jobs that they would try
	cursor     turn               // the last that was looked at: those before it had theirs; no job: none was
	cursorDone bool               // it had its own
	parked     parkedHeap         // once the lane had a turn: all buckets with jobs that have not
	gathered   int                // how many of the fresh shapes were looked up
	sure       bool               // it is in line for more than fresh shapes
	passed     bool               // its turn is over
}

// call puts the bucket in line with its first job whose turn is still to come.
func (l *lane) call(k *bucket) {
	if k.inLine {
		return
	}
	if e := l.after(k); e != nil {
		k.toTry, k.inLine = e, true
		l.called.Push(k)
	}
}

// after is the bucket's first job whose turn is still to come; nil: there is none.
func (l *lane) after(k *bucket) *waiter {
	at := 0
	if l.cursor.job != nil {
		i, found := k.index(l.backlog.order, l.cursor)
		if at = i; found && l.cursorDone {
			at++
		}
	}
	if at == len(k.jobs) {
		return nil
	}
	return k.jobs[at]
}

// gather calls the buckets that ask for a shape which a node takes since the last
// session. Where others may be evicted, so that a shape may be taken again, all are
// called: what is decided must not depend on when the lane is looked into.
func (l *lane) callFresh() {
	for ; l.gathered < len(l.backlog.fresh); l.gathered++ {
		if a := l.backlog.fresh[l.gathered]; len(a.fresh) > 0 || l.backlog.evicts {
			for _, k := range l.byShape[a] {
				l.call(k)
			}
		}
	}
}

// head is the first job whose turn is still to come, whether it is to be tried or
// not: what is parked holds its place in the line, or the order of turns would depend
// on what was tried in earlier sessions.
func (l *lane) head() *cluster.Job {
	if l.cursor.job == nil && len(l.arrivals) == 0 { // so are most lanes, in most sessions
		l.firstParked()
		return l.parkedFirstJob
	}
	e := l.firstInLine(false)
	if e == nil {
		return nil
	}
	return e.job
}

// goal is the first job that is to be tried; nil: there is none.
func (l *lane) firstToTry() *waiter {
	var goal *waiter
	if len(l.arrivals) > 0 {
		goal = l.arrivals[0]
	}
	if len(l.called.Items) > 0 && (goal == nil || l.backlog.compareWaiters(l.called.Items[0].toTry, goal) < 0) {
		goal = l.called.Items[0].toTry
	}
	return goal
}

// front is the first whose turn is still to come, of all or of those to be tried.
func (l *lane) firstInLine(tried bool) *waiter {
	first := l.firstToTry()
	var parked *waiter
	switch {
	case tried:
	case l.cursor.job == nil:
		parked = l.firstParked()
	default:
		parked = l.parked.front()
	}
	if parked != nil && (first == nil || l.backlog.compareWaiters(parked, first) < 0) {
		first = parked
	}
	if first != nil && l.cursor.job != nil {
		l.cursor, l.cursorDone = first.turn, false
	}
	return first
}

// reorder forgets what is known of the first jobs of buckets.
func (l *lane) reorder() { l.parkedFirstKnown, l.guard = false, nil }

// first is the first that is parked; nil: there is none.
func (l *lane) firstParked() *waiter {
	if !l.parkedFirstKnown {
		l.parkedFirst, l.parkedFirstJob, l.parkedFirstKnown = nil, nil, true
		for _, k := range l.buckets { // in any order: no two jobs compare equal
			if l.parkedFirst == nil || l.backlog.compareWaiters(k.jobs[0], l.parkedFirst) < 0 {
				l.parkedFirst, l.parkedFirstJob = k.jobs[0], k.jobs[0].job
			}
		}
	}
	return l.parkedFirst
}

// next takes the first job out of the line, and reports whether it is to be tried:
// something may have helped it, or it was not tried before.
func (l *lane) next(alone bool) (job *cluster.Job, try bool) {
	l.callFresh()
	if len(l.arrivals)+len(l.called.Items) == 0 {
		if l.endTurn(); alone || l.backlog.turns.contender(l.queue).depth == 0 {
			return nil, false
		}
	}
	e := l.firstInLine(alone)
	if e == nil {
		return nil, false
	}
	l.cursor, l.cursorDone = e.turn, true
	if len(l.arrivals) > 0 && l.arrivals[0] == e {
		l.arrivals, e.inArrivals = l.arrivals[1:], false
		return e.job, true
	}
	k := e.bucket
	if len(l.called.Items) > 0 && l.called.Items[0] == k && k.toTry == e {
		l.called.Pop()
		k.inLine = false
		try = k.forced || k.helped(l.backlog)
	}
	k.passed = l.backlog.moment()
	return e.job, try
}

// end notes that the lane's turn is over.
func (l *lane) endTurn() {
	if !l.passed && l.sure {
		l.backlog.waiting--
	}
	l.passed = true
}

// rest ends the lane's part in a session.
func (l *lane) endSession() {
	for _, k := range l.called.Items {
		k.inLine, k.forced = false, false
	}
	l.called.Clear()
	l.parked.rest()
	l.cursor, l.cursorDone, l.gathered, l.sure, l.passed = turn{}, false, 0, false, false
}

// list registers the bucket for what it asks.
func (l *lane) list(k *bucket) {
	l.guard = nil
	for _, a := range k.asks {
		a.buckets++
		if k.permanent {
			a.permanent++
		}
		l.byShape[a] = append(l.byShape[a], k)
		l.shapes.set(a.id)
	}
	if k.waits() {
		l.loose++
	}
}

// unlist takes back what list did.
func (l *lane) unlist(k *bucket) {
	l.guard = nil
	for _, a := range k.asks {
		a.buckets--
		if k.permanent {
			a.permanent--
		}
		if l.byShape[a] = without(l.byShape[a], k); len(l.byShape[a]) == 0 {
			delete(l.byShape, a)
			l.shapes.unset(a.id)
		}
		if a.buckets == 0 {
			l.backlog.dropShape(a)
		}
	}
	k.asks = k.asks[:0]
	if k.waits() {
		l.loose--
	}
}

// bitset is a set of small numbers.
type bitset []uint64

func (b *bitset) set(i int) {
	for i/64 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[i/64] |= 1 << (i % 64)
}

func (b bitset) unset(i int) {
	if i/64 < len(b) {
		b[i/64] &^= 1 << (i % 64)
	}
}

func (b bitset) meets(o bitset) bool {
	for i := range min(len(b), len(o)) {
		if b[i]&o[i] != 0 {
			return true
		}
	}
	return false
}
