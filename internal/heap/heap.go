// Package heap has a binary heap: the first of many items is at hand, while items come,
// leave and change their order.
package heap

// Heap keeps items so that Items[0] comes before all others. The two items below
// Items[i] are Items[2*i+1] and Items[2*i+2]; neither comes before it.
type Heap[T any] struct {
	Items []T
	// Before reports whether a comes before b.
	Before func(a, b T) bool
	// Moved is told the place of an item whenever it has another one, and -1 when the
	// item is taken out. It may be nil.
	Moved func(item T, place int)
}

// Push adds an item.
func (h *Heap[T]) Push(item T) {
	h.Append(item)
	h.up(len(h.Items) - 1)
}

// Append adds an item at the end. The heap is in order again after Init or, where the
// item is the only one out of place, Fix.
func (h *Heap[T]) Append(item T) {
	h.Items = append(h.Items, item)
	h.put(item, len(h.Items)-1)
}

// Init puts all items in order.
func (h *Heap[T]) Init() {
	for i := len(h.Items)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// Pop takes the first item out.
func (h *Heap[T]) Pop() T { return h.Remove(0) }

// Remove takes out the item at the place.
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

// Fix moves the item at the place to where it belongs, after its order has changed.
func (h *Heap[T]) Fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

// Clear forgets all items, without a call of Moved, and keeps their memory for others.
func (h *Heap[T]) Clear() {
	clear(h.Items)
	h.Items = h.Items[:0]
}

// put sets the item at the place.
func (h *Heap[T]) put(item T, i int) {
	h.Items[i] = item
	if h.Moved != nil {
		h.Moved(item, i)
	}
}

// up moves the item at the place towards the top.
func (h *Heap[T]) up(i int) {
	item, from := h.Items[i], i
	for i > 0 {
		above := (i - 1) / 2
		if !h.Before(item, h.Items[above]) {
			break
		}
		h.put(h.Items[above], i)
		i = above
	}
	if i != from {
		h.put(item, i)
	}
}

// down moves the item at the place away from the top. It reports whether it moved.
func (h *Heap[T]) down(i int) bool {
	item, from := h.Items[i], i
	for {
		below := 2*i + 1
		if below >= len(h.Items) {
			break
		}
		if right := below + 1; right < len(h.Items) && h.Before(h.Items[right], h.Items[below]) {
			below = right
		}
		if !h.Before(h.Items[below], item) {
			break
		}
		h.put(h.Items[below], i)
		i = below
	}
	if i != from {
		h.put(item, i)
	}
	return i != from
}
