package cluster

import "slices"

// recency is a linked list of slots, most recently changed first. A reader that knows
// the slots as of some version finds what changed since without reading the rest. A link
// is a slot plus one; 0 ends the list.
type recency struct {
	version    uint64   // of the most recent change
	versions   []uint64 // by slot: the version of its last change
	next, prev []int32
	newest     int32
}

// grow adds a slot, with version 0.
func (r *recency) grow() {
	r.versions = append(r.versions, 0)
	r.next = append(r.next, 0)
	r.prev = append(r.prev, 0)
	r.link(len(r.versions) - 1)
}

// touch gives the slot a new version and moves it to the head of the list.
func (r *recency) touch(slot int) {
	r.version++
	r.versions[slot] = r.version
	if r.newest != int32(slot+1) {
		r.unlink(slot)
		r.link(slot)
	}
}

// since calls visit for each slot that changed after the version, most recent first.
func (r *recency) since(version uint64, visit func(slot int)) {
	for at := r.newest; at != 0 && r.versions[at-1] > version; at = r.next[at-1] {
		visit(int(at - 1))
	}
}

func (r *recency) link(slot int) {
	at := int32(slot + 1)
	r.next[slot], r.prev[slot] = r.newest, 0
	if r.newest != 0 {
		r.prev[r.newest-1] = at
	}
	r.newest = at
}

func (r *recency) unlink(slot int) {
	next, prev := r.next[slot], r.prev[slot]
	if next != 0 {
		r.prev[next-1] = prev
	}
	if prev != 0 {
		r.next[prev-1] = next
	} else {
		r.newest = next
	}
}

// slots is a table of nodes, jobs or queues. It gives each of them a slot, which is a
// small number, and lists the slots by recency. The slots of removed objects stay in
// that list, so that readers notice the removal.
type slots[T any] struct {
	recency
	at     []*T  // by slot; nil if the object was removed
	unused []int // slots of removed objects, which take uses again
}

// take gives x a slot.
func (s *slots[T]) take(x *T) (slot int) {
	if k := len(s.unused); k > 0 {
		slot, s.unused = s.unused[k-1], s.unused[:k-1]
	} else {
		slot, s.at = len(s.at), append(s.at, nil)
		s.grow()
	}
	s.at[slot] = x
	return slot
}

// free makes the slot available to another object.
func (s *slots[T]) free(slot int) {
	s.at[slot] = nil
	s.unused = append(s.unused, slot)
}

// clone copies the slots without their objects: at is all nil, and the caller fills it.
func (s *slots[T]) clone() slots[T] {
	c := slots[T]{s.recency, make([]*T, len(s.at)), slices.Clone(s.unused)}
	c.versions, c.next, c.prev = slices.Clone(s.versions), slices.Clone(s.next), slices.Clone(s.prev)
	return c
}
