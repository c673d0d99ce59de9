package engine

import "github.com/berth-project/berth/internal/heap"

// parkedHeap is the buckets of a lane in the order of their first jobs whose turn is
// still to come. It is made when the lane has its first turn in a session.
//
// The jobs of a bucket bid alike, so that once one of them had its turn, all had that
// come before the next job of another bucket: until what queues use changes, the
// bucket is left out.
type parkedHeap struct {
	lane      *lane
	built     bool
	buckets   heap.Heap[*bucket]
	leftOut   []*bucket // left out
	leftOutAt moment    // that these are left out at
}

// moment tells when queues are compared alike: in one session, while what they use
// does not change.
type moment struct{ session, queues uint64 }

func (b *backlog) moment() moment { return moment{b.sessions, b.view.Recent().QueuesVersion()} }

// front is the first job of the lane whose turn is still to come.
func (h *parkedHeap) front() *waiter {
	l := h.lane
	now := l.backlog.moment()
	switch {
	case !h.built:
		h.built, h.leftOutAt = true, now
		for _, k := range l.buckets { // in any order: no two jobs compare equal
			if k.ahead = l.after(k); k.ahead != nil {
				h.buckets.Append(k)
			}
		}
		h.buckets.Init()
	case h.leftOutAt != now:
		h.leftOutAt = now
		for _, k := range h.leftOut {
			h.add(k)
		}
		h.leftOut = h.leftOut[:0]
	}
	for len(h.buckets.Items) > 0 {
		k := h.buckets.Items[0]
		if k.passed == now {
			h.buckets.Pop()
			h.leftOut = append(h.leftOut, k)
		} else if e := l.after(k); e == k.ahead {
			return e
		} else {
			h.buckets.Pop()
			h.add(k)
		}
	}
	return nil
}

// enter puts the bucket into the heap, unless none of its jobs is left.
func (h *parkedHeap) add(k *bucket) {
	if k.ahead = h.lane.after(k); k.ahead != nil {
		h.buckets.Push(k)
	}
}

// rest forgets the buckets.
func (h *parkedHeap) rest() {
	h.buckets.Clear()
	clear(h.leftOut)
	h.built, h.leftOut = false, h.leftOut[:0]
}
