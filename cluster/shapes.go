package cluster

// maxIdleShapes is how many shapes are remembered that no task has: what comes
// back finds its ranking again.
const maxIdleShapes = 1024

// shapes are the shapes that are interned, so that equal ones are one pointer.
type shapes struct {
	journal  *journal
	known    map[string]*interned // by spelling
	spelling []byte               // of the shape that was interned last: the room is used again
	idle     int                  // shapes without a use
}

type interned struct {
	shape *Shape
	uses  int
}

// useHeld counts (sign +1) or takes back (-1) the use of a shape that a task holds, if
// that is not the one that it requests.
func (h *shapes) useHeld(held, requested *Shape, sign int) {
	switch {
	case held == nil || held.alike(requested):
	case sign > 0:
		h.intern(held)
	default:
		h.drop(held)
	}
}

// intern returns the one Shape that spells like this one and counts the use. The
// shape given is copied where it is new.
func (h *shapes) intern(shape *Shape) *Shape {
	key := shape.appendKey(h.spelling[:0])
	h.spelling = key
	e := h.known[string(key)]
	switch {
	case e == nil:
		copied := *shape
		n := &copied.Need
		n.Products, n.Types, n.Selected = trim(n.Products), trim(n.Types), trim(n.Selected)
		copied.key = string(key)
		copied.devices = deviceRequestOf(&copied)
		e = &interned{shape: &copied}
		h.known[copied.key] = e
	case e.uses == 0:
		h.idle--
	}
	e.uses++
	return e.shape
}

// drop takes back one use of an interned shape. Shapes without a use are forgotten
// when there are many.
func (h *shapes) drop(shape *Shape) {
	e := h.known[shape.key]
	if e == nil || e.uses == 0 {
		return
	}
	if e.uses--; e.uses > 0 {
		return
	}
	if h.idle++; h.idle <= maxIdleShapes || h.journal.marks > 0 || h.journal.undoing { // an undo finds the shapes that it had
		return
	}
	for key, e := range h.known {
		if e.uses == 0 {
			delete(h.known, key)
		}
	}
	h.idle = 0
}

func (h *shapes) clone(l *journal) shapes {
	c := shapes{journal: l, known: make(map[string]*interned, len(h.known)), idle: h.idle}
	for key, e := range h.known {
		copied := *e
		c.known[key] = &copied
	}
	return c
}
