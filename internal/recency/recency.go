// Package recency lists things by when they changed.
package recency

import "slices"

// List is a linked list of slots, most recently changed first. A reader that knows the slots as of
// some version finds what changed since without reading the rest.
type List struct {
	Version    uint64   // of the most recent change
	Versions   []uint64 // by slot: the version of its last change
	next, prev []int32  // by slot; a link is a slot plus one, and 0 ends the list
	newest     int32
}

// Grow adds a slot. It must be touched before Since is called.
func (l *List) Grow() {
	l.Versions = append(l.Versions, 0)
	l.next = append(l.next, 0)
	l.prev = append(l.prev, 0)
	l.link(len(l.Versions) - 1)
}

// Touch gives the slot a new version and moves it to the head of the list.
func (l *List) Touch(slot int) {
	l.Version++
	l.Versions[slot] = l.Version
	if l.newest != int32(slot+1) {
		l.unlink(slot)
		l.link(slot)
	}
}

// Since calls visit for each slot that changed after the version, most recent first.
func (l *List) Since(version uint64, visit func(slot int)) {
	for at := l.newest; at != 0 && l.Versions[at-1] > version; at = l.next[at-1] {
		visit(int(at - 1))
	}
}

// Clone returns a copy.
func (l *List) Clone() List {
	return List{l.Version, slices.Clone(l.Versions), slices.Clone(l.next), slices.Clone(l.prev), l.newest}
}

func (l *List) link(slot int) {
	at := int32(slot + 1)
	l.next[slot], l.prev[slot] = l.newest, 0
	if l.newest != 0 {
		l.prev[l.newest-1] = at
	}
	l.newest = at
}

func (l *List) unlink(slot int) {
	next, prev := l.next[slot], l.prev[slot]
	if next != 0 {
		l.prev[next-1] = prev
	}
	if prev != 0 {
		l.next[prev-1] = next
	} else {
		l.newest = next
	}
}
