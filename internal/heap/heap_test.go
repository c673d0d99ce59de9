package heap

import (
	stdheap "container/heap"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type item struct{ key, place int }

func newHeap() *Heap[*item] {
	return &Heap[*item]{
		Before: func(a, b *item) bool { return a.key < b.key },
		Moved:  func(i *item, place int) { i.place = place },
	}
}

// standard is a heap with the same order that uses container/heap.
type standard []*item

func (s standard) Len() int           { return len(s) }
func (s standard) Less(i, j int) bool { return s[i].key < s[j].key }
func (s standard) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *standard) Push(x any)        { *s = append(*s, x.(*item)) }
func (s *standard) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// TestHeap compares the heap with that of the standard library after random operations.
// The items must be at the same indexes, even if some compare equal, and Moved must have
// reported the index of each item.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, want := newHeap(), &standard{}
		key := rapid.IntRange(0, 9)
		at := func() int { return rapid.IntRange(0, len(h.Items)-1).Draw(t, "at") }
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				i := &item{key: key.Draw(t, "key")}
				h.Push(i)
				stdheap.Push(want, i)
			},
			"append": func(t *rapid.T) {
				for range rapid.IntRange(0, 9).Draw(t, "items") {
					i := &item{key: key.Draw(t, "key")}
					h.Append(i)
					want.Push(i)
				}
				h.Init()
				stdheap.Init(want)
			},
			"pop": func(t *rapid.T) {
				if len(h.Items) == 0 {
					t.Skip()
				}
				if got, want := h.Pop(), stdheap.Pop(want); got != want || got.place != -1 {
					t.Fatalf("%v is popped, want %v", got, want)
				}
			},
			"remove": func(t *rapid.T) {
				if len(h.Items) == 0 {
					t.Skip()
				}
				i := at()
				if got, want := h.Remove(i), stdheap.Remove(want, i); got != want || got.place != -1 {
					t.Fatalf("%v is removed, want %v", got, want)
				}
			},
			"fix": func(t *rapid.T) {
				if len(h.Items) == 0 {
					t.Skip()
				}
				i := at()
				h.Items[i].key = key.Draw(t, "key")
				h.Fix(i)
				stdheap.Fix(want, i)
			},
			"clear": func(t *rapid.T) {
				h.Clear()
				*want = nil
			},
			"": func(t *rapid.T) {
				if !slices.Equal(h.Items, *want) {
					t.Fatalf("%v, want %v", h.Items, *want)
				}
				for i, in := range h.Items {
					if in.place != i {
						t.Fatalf("the item at %d was reported at %d", i, in.place)
					}
				}
			},
		})
	})
}

// TestPopOrder checks that items are popped in order.
func TestPopOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOf(rapid.IntRange(0, 99)).Draw(t, "keys")
		appended := rapid.IntRange(0, len(keys)).Draw(t, "appended")
		h := Heap[int]{Before: func(a, b int) bool { return a < b }}
		for _, k := range keys[:appended] {
			h.Append(k)
		}
		h.Init()
		for _, k := range keys[appended:] {
			h.Push(k)
		}
		var got []int
		for len(h.Items) > 0 {
			got = append(got, h.Pop())
		}
		if want := slices.Sorted(slices.Values(keys)); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// TestNoAllocations checks that operations on a heap with enough memory do not allocate.
func TestNoAllocations(t *testing.T) {
	h, one := newHeap(), &item{key: 5}
	for i := range 9 {
		h.Push(&item{key: i})
	}
	h.Push(one)
	if n := testing.AllocsPerRun(100, func() {
		h.Remove(one.place)
		h.Push(one)
		h.Fix(one.place)
		h.Init()
		h.Push(h.Pop())
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
