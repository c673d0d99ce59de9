package engine

import "github.com/berth-project/berth/internal/heap"

// parkedHeap orders the buckets of a lane by their first job that has not had its turn in
// this session. It is built when the lane has its first turn.
//
// All jobs of a bucket have equal bids. After one of them has had its turn, the other jobs of
// the bucket need no turn of their own until the use of a queue changes, so the bucket is left
// out until then.
type parkedHeap struct {
	lane      *lane
	built     bool
	buckets   heap.Heap[*bucket]
	leftOut   []*bucket // buckets of which one job had its turn at leftOutAt
	leftOutAt moment
}

// moment identifies a period in which comparisons of queues do not change: one session,
// while no queue changes.
type moment struct{ session, queues uint64 }

func (b *backlog) moment() moment { return moment{b.sessions, b.view.Recent().QueuesVersion()} }

// front returns the first parked job of the lane that has not had its turn; nil if there is
// none.
func (h *parkedHeap) front() *waiter {
	l := h.lane
	now := l.backlog.moment()
	switch {
	case !h.built:
		h.built, h.leftOutAt = true, now
		for _, k := range l.buckets { // the order does not matter: no two jobs compare equal
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

// add puts the bucket into the heap, unless all of its jobs have had their turn.
func (h *parkedHeap) add(k *bucket) {
	if k.ahead = h.lane.after(k); k.ahead != nil {
		h.buckets.Push(k)
	}
}

// rest empties the heap at the end of a session.
func (h *parkedHeap) rest() {
	h.buckets.Clear()
	clear(h.leftOut)
	h.built, h.leftOut = false, h.leftOut[:0]
}
