package cluster

// maxIdleShapes is how many shapes are kept that no task uses. If a task with such a
// shape arrives, the engine still has the ranking of the nodes for it.
const maxIdleShapes = 1024

// shapes is the table of interned shapes. Equal shapes are one pointer.
type shapes struct {
	journal  *journal
	known    map[string]*interned // by encoding
	spelling []byte               // buffer for the encoding of a shape, which intern uses again
	idle     int                  // number of shapes without a use
}

type interned struct {
	shape *Shape
	uses  int
}

// useHeld adds (sign +1) or removes (-1) a use of the shape that a task was placed with,
// if that is not the shape that the task requests now.
func (h *shapes) useHeld(held, requested *Shape, sign int) {
	switch {
	case held == nil || held.sameInterned(requested):
	case sign > 0:
		h.intern(held)
	default:
		h.drop(held)
	}
}

// intern returns the interned Shape that is equal to this one, and adds a use of it. A
// shape that is not known is copied.
func (h *shapes) intern(shape *Shape) *Shape {
	key := shape.appendKey(h.spelling[:0])
	h.spelling = key
	e := h.known[string(key)]
	switch {
	case e == nil:
		copied := *shape
		n := &copied.Need
		n.Products, n.Types, n.Selected = nilIfEmpty(n.Products), nilIfEmpty(n.Types), nilIfEmpty(n.Selected)
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

// drop removes one use of an interned shape. If more than maxIdleShapes shapes have no
// use, all of these are removed from the table.
func (h *shapes) drop(shape *Shape) {
	e := h.known[shape.key]
	if e == nil || e.uses == 0 {
		return
	}
	if e.uses--; e.uses > 0 {
		return
	}
	if h.idle++; h.idle <= maxIdleShapes || h.journal.marks > 0 || h.journal.undoing { // an undo must find the same shapes again
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
