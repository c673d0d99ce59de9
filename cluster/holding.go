package cluster

// Holds is what the task holds of the resource: cores and memory, with
// what its claims take of it, and devices in thousandths.
func (t *Task) Holds(name string) int64 {
	if t.Node == nil {
		return 0
	}
	v := t.Held().Resources.Of(name) + t.Node.host(t.Held(), t.Claims, name)
	for _, c := range t.Claims {
		if d := &t.Node.Devices[c.Device]; d.Resource == name || d.ProductResource == name {
			v += int64(c.Milli)
		}
	}
	return v
}

// Fork finds where the branches of two queues part: the two siblings, the first
// above the left queue and the second above the right one. Nil where one is
// above the other.
func (s *State) Fork(left, right *Queue) (a, b *Queue) { return s.tree.Fork(left, right) }

// TierWith is the tier of the queue for a job that requests so much more: beyond its
// quota a Guaranteed queue is Standard.
func (s *State) TierWith(q *Queue, asks func(resource string) int64) Tier {
	if q.Tier != TierGuaranteed {
		return q.Tier
	}
	for _, quota := range s.Deserved(q) {
		if ask := asks(quota.Name); ask > 0 && q.Used.Of(quota.Name)+ask > quota.Value {
			return TierStandard
		}
	}
	return q.Tier
}

// TierWithout is the tier of the queue for a victim that would be evicted and give
// back what it holds. A Guaranteed queue is Standard for what it holds beyond its
// quota, and Guaranteed for the rest: a victim that holds nothing that the quota
// names is within it. Keeps: without the victim the queue would hold less than its
// quota, so the victim is protected.
func (s *State) TierWithout(q *Queue, holds func(resource string) int64) (tier Tier, keeps bool) {
	if q.Tier != TierGuaranteed {
		return q.Tier, false
	}
	tier = TierGuaranteed
	for _, quota := range s.Deserved(q) {
		held := holds(quota.Name)
		if held > 0 && q.Used.Of(quota.Name)-held < quota.Value {
			return TierGuaranteed, true
		}
		if held > 0 {
			tier = TierStandard
		}
	}
	return tier, false
}

// Deserved is the queue's quota; of what it has none for, that of the queues below it together.
func (s *State) Deserved(q *Queue) Resources { return s.tree.Deserved(q) }
