package engine

import (
	stdheap "container/heap"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// lane is the backlog of one queue: of jobs that want their minimum, or of those
// that want more.
type lane struct {
	backlog *backlog
	queue   *cluster.Queue
	surplus bool

	arrivals []*waiter // to be tried, whatever changed
	buckets  map[string]*bucket
	asks     map[*asked][]*bucket
	shapes   bitset // of asks
	loose    int    // buckets that any change of a node may help

	// While a session runs:
	called   []*bucket    // heap of those that something may have helped
	cursor   *cluster.Job // the last that was tried
	gathered int          // how many of the fresh shapes were looked up
	sure     bool         // it is in line for more than fresh shapes
	passed   bool         // its turn is over
}

// The heap of called buckets, in the order of the jobs that they would try.
func (l *lane) Len() int { return len(l.called) }
func (l *lane) Less(i, j int) bool {
	return l.backlog.session.compareJobs(l.called[i].pick.job, l.called[j].pick.job) < 0
}
func (l *lane) Swap(i, j int) { l.called[i], l.called[j] = l.called[j], l.called[i] }
func (l *lane) Push(x any)    { l.called = append(l.called, x.(*bucket)) }
func (l *lane) Pop() any {
	n := len(l.called) - 1
	k := l.called[n]
	l.called[n], l.called = nil, l.called[:n]
	return k
}

// call puts the bucket in line with its first job whose turn is still to come.
func (l *lane) call(k *bucket) {
	if k.called {
		return
	}
	at := 0
	if l.cursor != nil {
		i, found := k.index(l.backlog.session, l.cursor)
		if at = i; found {
			at++
		}
	}
	if at < len(k.jobs) {
		k.pick, k.called = k.jobs[at], true
		stdheap.Push(l, k)
	}
}

// gather calls the buckets that ask for a shape which a node takes since the last session.
func (l *lane) gather() {
	for ; l.gathered < len(l.backlog.fresh); l.gathered++ {
		if a := l.backlog.fresh[l.gathered]; len(a.fresh) > 0 {
			for _, k := range l.asks[a] {
				l.call(k)
			}
		}
	}
}

// next is the first job that something may have helped, or that was not tried before.
func (l *lane) next() *cluster.Job {
	l.gather()
	s := l.backlog.session
	for len(l.arrivals)+len(l.called) > 0 {
		if len(l.called) == 0 || len(l.arrivals) > 0 && s.compareJobs(l.arrivals[0].job, l.called[0].pick.job) < 0 {
			e := l.arrivals[0]
			l.arrivals, e.arrived = l.arrivals[1:], false
			l.cursor = e.job
			return e.job
		}
		k := stdheap.Pop(l).(*bucket)
		k.called = false
		if k.forced || s.helped(k) {
			l.cursor = k.pick.job
			return k.pick.job
		}
	}
	if l.passed = true; l.sure {
		l.backlog.waiting--
	}
	return nil
}

// rest ends the lane's part in a session.
func (l *lane) rest() {
	for _, k := range l.called {
		k.called, k.forced = false, false
	}
	clear(l.called)
	l.called = l.called[:0]
	l.cursor, l.gathered, l.sure, l.passed = nil, 0, false, false
}

// list registers the bucket for what it asks.
func (l *lane) list(k *bucket) {
	for _, a := range k.asks {
		a.buckets++
		if k.permanent {
			a.permanent++
		}
		l.asks[a] = append(l.asks[a], k)
		l.shapes.set(a.id)
	}
	if k.loose {
		l.loose++
	}
}

// unlist takes back what list did.
func (l *lane) unlist(k *bucket) {
	for _, a := range k.asks {
		a.buckets--
		if k.permanent {
			a.permanent--
		}
		l.asks[a] = slices.DeleteFunc(l.asks[a], func(o *bucket) bool { return o == k })
		if len(l.asks[a]) == 0 {
			delete(l.asks, a)
			l.shapes.unset(a.id)
		}
		if a.buckets == 0 {
			l.backlog.drop(a)
		}
	}
	k.asks = k.asks[:0]
	if k.loose {
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
