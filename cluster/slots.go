package cluster

import (
	"slices"

	"github.com/berth-project/berth/internal/paged"
	"github.com/berth-project/berth/internal/recency"
)

// slots is a table of nodes, jobs or queues. It gives each of them a slot, which is a
// small number, and lists the slots by recency. The slots of removed objects stay in
// that list, so that readers notice the removal.
type slots[T any] struct {
	recency.List
	table  paged.Table[T] // nil in the slots of removed objects
	unused []int          // slots of removed objects, which take uses again
}

// take gives x a slot.
func (s *slots[T]) take(x *T) (slot int) {
	if k := len(s.unused); k > 0 {
		slot, s.unused = s.unused[k-1], s.unused[:k-1]
	} else {
		slot = s.table.Len()
		s.table.Grow(slot + 1)
		s.Grow()
	}
	s.table.Set(slot, x)
	return slot
}

// free makes the slot available to another object.
func (s *slots[T]) free(slot int) {
	s.table.Set(slot, nil)
	s.unused = append(s.unused, slot)
}

// clone copies the slots without their objects: the table is all nil, and the caller fills it.
func (s *slots[T]) clone() slots[T] {
	c := slots[T]{List: s.List.Clone(), unused: slices.Clone(s.unused)}
	c.table.Grow(s.table.Len())
	return c
}
