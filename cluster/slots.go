package cluster

import (
	"slices"

	"github.com/berth-project/berth/internal/recency"
)

// slots is a table of nodes, jobs or queues. It gives each of them a slot, which is a
// small number, and lists the slots by recency. The slots of removed objects stay in
// that list, so that readers notice the removal.
type slots[T any] struct {
	recency.List
	table  table[T] // nil in the slots of removed objects
	unused []int    // slots of removed objects, which take uses again
}

// table has a pointer for each slot. It grows page by page, because copying many pointers takes long
// while the garbage collector marks.
type table[T any] struct {
	pages [][]*T
	slots int
}

const pageSize = 512

// at returns the pointer of the slot.
func (t *table[T]) at(slot int) *T { return t.pages[slot/pageSize][slot%pageSize] }

// set changes the pointer of the slot.
func (t *table[T]) set(slot int, x *T) { t.pages[slot/pageSize][slot%pageSize] = x }

// grow adds slots until there are n.
func (t *table[T]) grow(n int) {
	for t.slots = max(n, t.slots); len(t.pages)*pageSize < n; {
		t.pages = append(t.pages, make([]*T, pageSize))
	}
}

// take gives x a slot.
func (s *slots[T]) take(x *T) (slot int) {
	if k := len(s.unused); k > 0 {
		slot, s.unused = s.unused[k-1], s.unused[:k-1]
	} else {
		slot = s.table.slots
		s.table.grow(slot + 1)
		s.Grow()
	}
	s.table.set(slot, x)
	return slot
}

// free makes the slot available to another object.
func (s *slots[T]) free(slot int) {
	s.table.set(slot, nil)
	s.unused = append(s.unused, slot)
}

// clone copies the slots without their objects: the table is all nil, and the caller fills it.
func (s *slots[T]) clone() slots[T] {
	c := slots[T]{List: s.List.Clone(), unused: slices.Clone(s.unused)}
	c.table.grow(s.table.slots)
	return c
}
