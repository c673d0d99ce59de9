package engine

import stdheap "container/heap"

// parkedHeap is the buckets of a lane in the order of their first jobs whose turn is
// still to come. It is made when the lane has its first turn in a session.
//
// The jobs of a bucket bid alike, so that once one of them had its turn, all had that
// come before the next job of another bucket: until what queues use changes, the
// bucket is left out.
type parkedHeap struct {
	lane    *lane
	made    bool
	buckets []*bucket
	aside   []*bucket // left out
	at      moment    // that these are left out at
}

// moment tells when queues are compared alike: in one session, while what they use
// does not change.
type moment struct{ session, queues uint64 }

func (b *backlog) moment() moment { return moment{b.sessions, b.view.Recent().QueuesVersion()} }

func (h *parkedHeap) Len() int { return len(h.buckets) }
func (h *parkedHeap) Less(i, j int) bool {
	return h.lane.backlog.compareWaiters(h.buckets[i].ahead, h.buckets[j].ahead) < 0
}
func (h *parkedHeap) Swap(i, j int) { h.buckets[i], h.buckets[j] = h.buckets[j], h.buckets[i] }
func (h *parkedHeap) Push(x any)    { h.buckets = append(h.buckets, x.(*bucket)) }
func (h *parkedHeap) Pop() any {
	n := len(h.buckets) - 1
	k := h.buckets[n]
	h.buckets[n], h.buckets = nil, h.buckets[:n]
	return k
}

// front is the first job of the lane whose turn is still to come.
func (h *parkedHeap) front(l *lane) *waiter {
	now := l.backlog.moment()
	switch {
	case !h.made:
		h.lane, h.made, h.at = l, true, now
		for _, k := range l.buckets { // in any order: no two jobs compare equal
			if k.ahead = l.after(k); k.ahead != nil {
				h.buckets = append(h.buckets, k)
			}
		}
		stdheap.Init(h)
	case h.at != now:
		h.at = now
		for _, k := range h.aside {
			h.enter(k)
		}
		h.aside = h.aside[:0]
	}
	for len(h.buckets) > 0 {
		k := h.buckets[0]
		if k.passed == now {
			stdheap.Pop(h)
			h.aside = append(h.aside, k)
		} else if e := l.after(k); e == k.ahead {
			return e
		} else {
			stdheap.Pop(h)
			h.enter(k)
		}
	}
	return nil
}

// enter puts the bucket into the heap, unless none of its jobs is left.
func (h *parkedHeap) enter(k *bucket) {
	if k.ahead = h.lane.after(k); k.ahead != nil {
		stdheap.Push(h, k)
	}
}

// rest forgets the buckets.
func (h *parkedHeap) rest() {
	clear(h.buckets)
	clear(h.aside)
	*h = parkedHeap{buckets: h.buckets[:0], aside: h.aside[:0]}
}
