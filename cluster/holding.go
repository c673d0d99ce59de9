package cluster

import (
	"slices"
	"strings"
)

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
// above the other, or one of them is nil.
func (s *State) Fork(left, right *Queue) (a, b *Queue) {
	if left == right || left == nil || right == nil {
		return nil, nil
	}
	if left.Parent == right.Parent {
		return left, right
	}
	deeper := s.depth(left) - s.depth(right)
	for ; deeper > 0; deeper-- {
		left = s.Parent(left)
	}
	for ; deeper < 0; deeper++ {
		right = s.Parent(right)
	}
	for left != right {
		a, b = left, right
		left, right = s.Parent(left), s.Parent(right)
	}
	return a, b
}

// depth is how many queues are above the queue.
func (s *State) depth(q *Queue) int {
	n := 0
	for q = s.Parent(q); q != nil; q = s.Parent(q) {
		n++
	}
	return n
}

// Deserved is the queue's quota; of what it has none for, that of the queues below it together.
func (s *State) Deserved(q *Queue) Resources {
	if known := s.queues[q.Name]; known != nil {
		return known.deserved
	}
	return nil
}

// sumQuotas works out again what the queue deserves, and all above it.
func (s *State) sumQuotas(q *Queue) {
	for ; q != nil; q = s.Parent(q) {
		s.sumQuota(q)
	}
}

// sumQuota works out again what the queue deserves.
func (s *State) sumQuota(q *Queue) {
	sum := map[string]int64{}
	for _, name := range q.children {
		for _, a := range s.queues[name].deserved {
			total, ok := AddOverflow(sum[a.Name], a.Value)
			if !ok {
				total = Unlimited
			}
			sum[a.Name] = total
		}
	}
	for _, a := range q.Quota {
		sum[a.Name] = a.Value
	}
	q.deserved = nil
	for name, v := range sum {
		q.deserved = append(q.deserved, Amount{name, v})
	}
	slices.SortFunc(q.deserved, func(a, b Amount) int { return strings.Compare(a.Name, b.Name) })
}
