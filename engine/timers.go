package engine

import "github.com/berth-project/berth/internal/heap"

// newTimers returns an empty heap of buckets, ordered by the end of their back-off.
func newTimers() heap.Heap[*bucket] {
	return heap.Heap[*bucket]{
		Before: func(a, b *bucket) bool { return a.parked.RetryAt < b.parked.RetryAt },
		Moved:  func(k *bucket, place int) { k.timer = place },
	}
}

// start sets the timer of the bucket to the end of its back-off.
func (b *backlog) start(k *bucket) {
	switch {
	case k.parked.RetryAt == 0:
		b.stop(k)
	case k.timer < 0:
		b.timers.Push(k)
	default:
		b.timers.Fix(k.timer)
	}
}

// stop removes the timer of the bucket.
func (b *backlog) stop(k *bucket) {
	if k.timer >= 0 {
		b.timers.Remove(k.timer)
	}
}
