package engine

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/heap"
)

// lane holds the pending jobs of one queue in the backlog.
type lane struct {
	backlog *backlog
	queue   *cluster.Queue

	arrivals       []*waiter            // jobs that are not parked and are tried in any case
	buckets        map[string]*bucket   // the parked jobs, by the result of bucketKey
	byShape        map[*asked][]*bucket // the buckets that request a shape
	shapes         bitset               // the IDs of the shapes in byShape
	alwaysExamined int                  // how many buckets are examined in every session

	// The first parked job in the order of turns, kept from session to session while
	// parkedFirstKnown is set.
	parkedFirst      *waiter
	parkedFirstJob   *cluster.Job
	parkedFirstKnown bool
	guard            *cluster.Job // see setGuard; nil if there is none
	guardShapes      bitset       // the value of backlog.freshIDs when the guard was set; it is never modified
	stale            bool         // it is in laneOrder.stale

	// The fields below are used while a session runs.
	inLine        heap.Heap[*bucket] // the buckets that a change may have helped, by their jobs to be tried
	cursor        turn               // the turn up to which jobs have had their turns; its job is nil at the beginning
	cursorDone    bool               // the job of the cursor has had its turn as well
	parked        parkedHeap         // the buckets with jobs that have not had their turn; made when the lane has its first turn
	freshExamined int                // how many entries of backlog.freshShapes were examined
	joined        bool               // joinLine put it in line; see backlog.joined
	passed        bool               // its turn is over; see backlog.markPassed
}

// putInLine puts the bucket in line, with its first job that has not had its turn.
func (l *lane) putInLine(k *bucket) {
	if k.inLine {
		return
	}
	if e := l.after(k); e != nil {
		k.toTry, k.inLine = e, true
		l.inLine.Push(k)
	}
}

// after returns the first job of the bucket that has not had its turn, or nil.
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

// putFreshInLine puts in line the buckets that request a fresh shape. If evictions are possible, it
// includes shapes for which no room is left by now, because evictions may free it again: decisions
// must not depend on when the lane is examined.
func (l *lane) putFreshInLine() {
	for ; l.freshExamined < len(l.backlog.freshShapes); l.freshExamined++ {
		if a := l.backlog.freshShapes[l.freshExamined]; len(a.freshNodes) > 0 || l.backlog.evicts {
			for _, k := range l.byShape[a] {
				l.putInLine(k)
			}
		}
	}
}

// head returns the first job that has not had its turn, whether it is to be tried or not.
// Parked jobs keep their places in line, because otherwise the order of turns would depend
// on what was tried in earlier sessions.
func (l *lane) head() *cluster.Job {
	if l.cursor.job == nil && len(l.arrivals) == 0 { // a shortcut for most lanes in most sessions
		l.firstParked()
		return l.parkedFirstJob
	}
	e := l.firstInLine(false)
	if e == nil {
		return nil
	}
	return e.job
}

// hasJobToTry reports whether the lane has a job that is to be tried.
func (l *lane) hasJobToTry() bool {
	l.putFreshInLine()
	return len(l.arrivals)+len(l.inLine.Items) > 0
}

// firstToTry returns the first job that is to be tried, or nil.
func (l *lane) firstToTry() *waiter {
	var goal *waiter
	if len(l.arrivals) > 0 {
		goal = l.arrivals[0]
	}
	if len(l.inLine.Items) > 0 && (goal == nil || l.backlog.compareWaiters(l.inLine.Items[0].toTry, goal) < 0) {
		goal = l.inLine.Items[0].toTry
	}
	return goal
}

// firstInLine returns the first job that has not had its turn, or nil. If tried is set, it
// considers only jobs that are to be tried.
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

// reorder drops what is remembered of the first jobs of buckets, after one of them changed.
func (l *lane) reorder() {
	l.parkedFirstKnown, l.guard = false, nil
	l.backlog.byBid.markStale(l)
}

// firstParked returns the first parked job in the order of turns, or nil.
func (l *lane) firstParked() *waiter {
	if !l.parkedFirstKnown {
		l.parkedFirst, l.parkedFirstJob, l.parkedFirstKnown = nil, nil, true
		for _, k := range l.buckets { // the order of the map does not matter, since no two jobs compare equal
			if l.parkedFirst == nil || l.backlog.compareWaiters(k.jobs[0], l.parkedFirst) < 0 {
				l.parkedFirst, l.parkedFirstJob = k.jobs[0], k.jobs[0].job
			}
		}
	}
	return l.parkedFirst
}

// next takes the first job out of the line, and reports whether it is to be tried: it is not
// parked, or a change may have helped it. If alone is set, no other queue is in line, and
// jobs that are not to be tried are skipped.
func (l *lane) next(alone bool) (job *cluster.Job, try bool) {
	if !l.hasJobToTry() {
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
		l.arrivals[0] = nil // so that the array does not keep the job
		if e.inArrivals = false; len(l.arrivals) > 1 {
			l.arrivals = l.arrivals[1:]
		} else {
			l.arrivals = l.arrivals[:0] // which keeps room for the next one
		}
		return e.job, true
	}
	k := e.bucket
	if len(l.inLine.Items) > 0 && l.inLine.Items[0] == k && k.toTry == e {
		l.inLine.Pop()
		k.inLine = false
		try = k.forced || k.helped(l.backlog)
	}
	k.passed = l.backlog.moment()
	return e.job, try
}

// endTurn records that the lane's turn is over.
func (l *lane) endTurn() {
	if !l.passed && l.joined {
		l.backlog.waiting--
	}
	l.passed = true
}

// endSession resets the fields that are used while a session runs.
func (l *lane) endSession() {
	for _, k := range l.inLine.Items {
		k.inLine, k.forced = false, false
	}
	l.inLine.Clear()
	l.parked.rest()
	l.cursor, l.cursorDone, l.freshExamined, l.joined, l.passed = turn{}, false, 0, false, false
}

// list adds the bucket to the indexes of the lane: by its shapes, and by whether it is examined in
// every session.
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
		l.alwaysExamined++
	}
}

// unlist removes the bucket from the indexes of the lane.
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
		l.alwaysExamined--
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
