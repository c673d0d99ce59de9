package engine

import "github.com/berth-project/berth/cluster"

// contender is a queue that has jobs in line, or queues below it that do.
type contender struct {
	queue  *cluster.Queue
	above  *contender
	below  siblings     // in line, the first at the top of the heap
	line   line         // of a leaf
	first  *cluster.Job // the head of its line; nil: it has none left
	depth  int          // -1: the root, which is no queue
	place  int          // among those below the queue above, or among the leaves; -1: not in line
	marked bool         // compared otherwise than before
	moved  int          // how many of those below are
	best   *contender   // of those below, while all are compared
	won    int          // the length of turns.levels when it last won or joined: later levels are those of others
}

// leaf is the leaf that comes first below the contender, or the contender itself.
func (c *contender) leaf() *contender {
	for len(c.below.list) > 0 {
		c = c.below.list[0]
	}
	return c
}

// elected is the leaf that was found to come first below the contender.
func (c *contender) elected() *contender {
	for c.best != nil {
		c = c.best
	}
	return c
}

// bid is the queue of a leaf with its job.
func (c *contender) bid() Bid { return Bid{c.queue, c.first} }

// stand has the contender stand against its siblings before it. The queue above it,
// if it was not there yet, is added to those of its depth.
func (c *contender) stand(inner [][]*contender) [][]*contender {
	up := c.above
	if up.best == nil && up.depth >= 0 {
		inner[up.depth] = append(inner[up.depth], up)
	}
	if up.best == nil || up.below.turns.before(c, c.elected(), up.best, up.best.elected()) {
		up.best = c
	}
	return inner
}

// before compares siblings, each with a leaf below it. One without a job comes last.
func (t *turns) before(a, leafOfA, b, leafOfB *contender) bool {
	x, y := leafOfA.first, leafOfB.first
	if x == nil || y == nil {
		return x != nil
	}
	return t.order.siblings(Bid{a.queue, x}, Bid{b.queue, y}) < 0
}

// siblings are a heap of contenders.
type siblings struct {
	turns *turns
	list  []*contender
}

func (h *siblings) Len() int { return len(h.list) }
func (h *siblings) Less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	return h.turns.before(a, a.leaf(), b, b.leaf())
}
func (h *siblings) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.list[i].place, h.list[j].place = i, j
}
func (h *siblings) Push(x any) {
	c := x.(*contender)
	c.place = len(h.list)
	h.list = append(h.list, c)
}
func (h *siblings) Pop() any {
	n := len(h.list) - 1
	c := h.list[n]
	h.list[n], h.list = nil, h.list[:n]
	c.place = -1
	return c
}
