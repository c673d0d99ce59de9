package recent

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSet compares random operations with a list of the keys in the order in which they were
// added.
func TestSet(t *testing.T) {
	const limit = 5
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, added := New[int](limit), []int{}
		for range 200 {
			k := r.IntN(12)
			switch r.IntN(6) {
			case 0:
				if had := slices.Contains(added, k); s.Remove(k) != had {
					t.Fatalf("seed %d: Remove(%d) is %v; want %v", seed, k, !had, had)
				}
				added = slices.DeleteFunc(added, func(x int) bool { return x == k })
			case 1:
				odd := func(x int) bool { return x%2 == 1 }
				if r.IntN(8) > 0 {
					break
				}
				s.Keep(odd)
				added = slices.DeleteFunc(added, func(x int) bool { return !odd(x) })
			default:
				isNew := !slices.Contains(added, k)
				if s.Add(k) != isNew {
					t.Fatalf("seed %d: Add(%d) is %v; want %v", seed, k, !isNew, isNew)
				}
				if isNew {
					added = append(added, k)
				}
			}
			if s.Len() > limit {
				t.Fatalf("seed %d: the set has %d keys, and its limit is %d", seed, s.Len(), limit)
			}
			// What was added last is in the set. Slots of removed keys are not used again at
			// once, so that older keys may be forgotten earlier than the limit demands.
			added = slices.DeleteFunc(added, func(x int) bool { return !s.Has(x) })
			if s.Len() != len(added) {
				t.Fatalf("seed %d: the set has %d keys; want those of %v", seed, s.Len(), added)
			}
		}
	}
}

// TestForgets shows which key is forgotten.
func TestForgets(t *testing.T) {
	s := New[string](2)
	s.Add("a")
	s.Add("b")
	s.Add("b") // it was added already
	s.Add("c")
	if s.Has("a") || !s.Has("b") || !s.Has("c") {
		t.Errorf("a %v, b %v, c %v; want only the last two", s.Has("a"), s.Has("b"), s.Has("c"))
	}
	s.Remove("b")
	s.Add("b")
	if !s.Has("b") || !s.Has("c") {
		t.Errorf("b %v, c %v; want both", s.Has("b"), s.Has("c"))
	}
}
