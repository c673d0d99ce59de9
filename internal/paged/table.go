// Package paged has tables that grow page by page.
package paged

import "iter"

// pageSize is the number of pointers in a page.
const pageSize = 512

// Table has a pointer for each index from 0 on. When it grows, no pointers are copied: to copy many takes
// long while the garbage collector marks.
type Table[T any] struct {
	pages  [][]*T
	length int
}

// Len returns the number of indexes.
func (t *Table[T]) Len() int { return t.length }

// At returns the pointer at the index.
func (t *Table[T]) At(i int) *T { return t.pages[i/pageSize][i%pageSize] }

// Set changes the pointer at the index.
func (t *Table[T]) Set(i int, x *T) { t.pages[i/pageSize][i%pageSize] = x }

// Append adds a pointer at the end.
func (t *Table[T]) Append(x *T) {
	t.Grow(t.length + 1)
	t.Set(t.length-1, x)
}

// RemoveLast removes the pointer at the end.
func (t *Table[T]) RemoveLast() {
	t.length--
	t.Set(t.length, nil)
	t.pages = t.pages[:(t.length+pageSize-1)/pageSize]
}

// All returns all pointers in order.
func (t *Table[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range t.length {
			if !yield(t.At(i)) {
				return
			}
		}
	}
}

// Grow makes the table have at least n indexes. New pointers are nil.
func (t *Table[T]) Grow(n int) {
	for t.length = max(n, t.length); len(t.pages)*pageSize < n; {
		t.pages = append(t.pages, make([]*T, pageSize))
	}
}
