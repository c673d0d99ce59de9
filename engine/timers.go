package engine

import stdheap "container/heap"

// timers are the buckets that are tried again at some time, soonest first.
type timers []*bucket

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].parked.RetryAt < t[j].parked.RetryAt }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].timer, t[j].timer = i, j
}
func (t *timers) Push(x any) {
	k := x.(*bucket)
	k.timer = len(*t)
	*t = append(*t, k)
}
func (t *timers) Pop() any {
	n := len(*t) - 1
	k := (*t)[n]
	(*t)[n], *t = nil, (*t)[:n]
	k.timer = -1
	return k
}

// start sets the bucket's timer by its back-off.
func (b *backlog) start(k *bucket) {
	switch {
	case k.parked.RetryAt == 0:
		b.stop(k)
	case k.timer < 0:
		stdheap.Push(&b.timers, k)
	default:
		stdheap.Fix(&b.timers, k.timer)
	}
}

// stop takes the bucket's timer away.
func (b *backlog) stop(k *bucket) {
	if k.timer >= 0 {
		stdheap.Remove(&b.timers, k.timer)
	}
}
