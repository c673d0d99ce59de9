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
// above the other, or one of them is nil.
func (s *State) Fork(left, right *Queue) (a, b *Queue) { return s.tree.Fork(left, right) }

// Deserved is the queue's quota; of what it has none for, that of the queues below it together.
func (s *State) Deserved(q *Queue) Resources { return s.tree.Deserved(q) }
