package engine

// slab gives out short slices of larger pieces of memory, which takes fewer allocations. A piece is
// kept as long as one of its slices is in use, so it is small.
type slab[T any] struct{ left []T }

// slabLength is the length of a piece.
const slabLength = 32

// keep returns a copy of the list, which has no room for more. It is empty and not
// nil if the list is empty.
func (s *slab[T]) keep(list []T) []T {
	n := len(list)
	if n == 0 {
		return []T{}
	}
	if n > len(s.left) {
		s.left = make([]T, max(n, slabLength))
	}
	out := s.left[:n:n]
	s.left = s.left[n:]
	copy(out, list)
	return out
}
