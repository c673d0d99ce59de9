// Package paged has tables that grow page by page.
package paged

import "iter"

// pageSize is the number of pointers in a page.
const pageSize = 512

// Table has a pointer for each index from 0 on. When it grows beyond the first page, no pointers are copied:
// to copy many takes long while the garbage collector marks.
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

// RemoveLast removes the pointer at the end. Its memory is kept for pointers that are added later.
func (t *Table[T]) RemoveLast() {
	t.length--
	t.Set(t.length, nil)
}

// All returns all pointers in order. The table must not change its length meanwhile.
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
	if t.length = max(n, t.length); len(t.pages) == 0 {
		t.pages = [][]*T{nil}
	}
	if more := min(n, pageSize) - len(t.pages[0]); more > 0 { // the first page is as small as a slice, because many tables are
		t.pages[0] = append(t.pages[0], make([]*T, more)...)
	}
	for len(t.pages)*pageSize < n {
		t.pages = append(t.pages, make([]*T, pageSize))
	}
}
