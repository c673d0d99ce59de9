// Package recent has a set of bounded size that forgets the keys that were added first.
package recent

import (
	"iter"
	"maps"
)

// Set has the keys that were added last, at most as many as its limit. Use New.
type Set[K comparable] struct {
	limit int
	slots map[K]int // the index in ring of each key
	ring  []K
	next  int // the index in ring that is overwritten next, if ring has the length of the limit
}

// New returns an empty Set that has at most limit keys.
func New[K comparable](limit int) *Set[K] { return &Set[K]{limit: limit, slots: map[K]int{}} }

// Len returns how many keys the set has.
func (s *Set[K]) Len() int { return len(s.slots) }

// All returns the keys, in no particular order.
func (s *Set[K]) All() iter.Seq[K] { return maps.Keys(s.slots) }

// Has reports whether the set has the key.
func (s *Set[K]) Has(k K) bool {
	_, has := s.slots[k]
	return has
}

// Add adds the key, and reports whether the set did not have it.
func (s *Set[K]) Add(k K) bool {
	if s.Has(k) {
		return false
	}
	if len(s.ring) < s.limit {
		s.slots[k] = len(s.ring)
		s.ring = append(s.ring, k)
		return true
	}
	if first := s.ring[s.next]; s.slots[first] == s.next { // it was not removed and added again
		delete(s.slots, first)
	}
	s.slots[k], s.ring[s.next] = s.next, k
	s.next = (s.next + 1) % s.limit
	return true
}

// Remove removes the key, and reports whether the set had it.
func (s *Set[K]) Remove(k K) bool {
	had := s.Has(k)
	delete(s.slots, k)
	return had
}

// Keep removes all keys for which keep returns false.
func (s *Set[K]) Keep(keep func(K) bool) {
	maps.DeleteFunc(s.slots, func(k K, _ int) bool { return !keep(k) })
}
