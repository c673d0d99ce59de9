// Package heap implements a binary heap. It gives access to the first of many items
// while items are added, removed and reordered.
package heap

// Heap keeps items in an order in which Items[0] is the first. The children of Items[i]
// are Items[2*i+1] and Items[2*i+2]; no item is before its parent.
type Heap[T any] struct {
	Items []T
	// Before reports whether a is before b.
	Before func(a, b T) bool
	// Moved is called with the new index of an item whenever the index changes, and
	// with -1 when the item is removed. It may be nil.
	Moved func(item T, place int)
}

// Push adds an item.
func (h *Heap[T]) Push(item T) {
	h.Append(item)
	h.up(len(h.Items) - 1)
}

// Append adds an item at the end, without restoring the order. Call Init afterwards or,
// if only this item is out of order, Fix.
func (h *Heap[T]) Append(item T) {
	h.Items = append(h.Items, item)
	h.put(item, len(h.Items)-1)
}

// Init establishes the order of all items.
func (h *Heap[T]) Init() {
	for i := len(h.Items)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// Pop removes the first item and returns it.
func (h *Heap[T]) Pop() T { return h.Remove(0) }

// Remove removes the item at index i and returns it.
func (h *Heap[T]) Remove(i int) T {
	n := len(h.Items) - 1
	out, last := h.Items[i], h.Items[n]
	clear(h.Items[n:])
	h.Items = h.Items[:n]
	if i < n {
		h.put(last, i)
		h.Fix(i)
	}
	if h.Moved != nil {
		h.Moved(out, -1)
	}
	return out
}

// Fix restores the order after the item at index i has changed.
func (h *Heap[T]) Fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

// Clear removes all items without calling Moved. The memory of Items is kept for reuse.
func (h *Heap[T]) Clear() {
	clear(h.Items)
	h.Items = h.Items[:0]
}

// put stores the item at index i.
func (h *Heap[T]) put(item T, i int) {
	h.Items[i] = item
	if h.Moved != nil {
		h.Moved(item, i)
	}
}

// up moves the item at index i towards the top until it is not before its parent.
func (h *Heap[T]) up(i int) {
	item, from := h.Items[i], i
	for i > 0 {
		parent := (i - 1) / 2
		if !h.Before(item, h.Items[parent]) {
			break
		}
		h.put(h.Items[parent], i)
		i = parent
	}
	if i != from {
		h.put(item, i)
	}
}

// down moves the item at index i away from the top until no child is before it. It
// reports whether the item moved.
func (h *Heap[T]) down(i int) bool {
	item, from := h.Items[i], i
	for {
		child := 2*i + 1
		if child >= len(h.Items) {
			break
		}
		if right := child + 1; right < len(h.Items) && h.Before(h.Items[right], h.Items[child]) {
			child = right
		}
		if !h.Before(h.Items[child], item) {
			break
		}
		h.put(h.Items[child], i)
		i = child
	}
	if i != from {
		h.put(item, i)
	}
	return i != from
}
