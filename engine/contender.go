package engine

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/heap"
)

// contender is a queue that has jobs in line, or queues below it that do.
type contender struct {
	queue  *cluster.Queue
	above  *contender
	below  heap.Heap[*contender] // in line, the first at the top of the heap
	line   line                  // of a leaf
	first  *cluster.Job          // the head of its line; nil: it has none left
	depth  int                   // -1: the root, which is no queue
	place  int                   // among those below the queue above, or among the leaves; -1: not in line
	marked bool                  // compared otherwise than before
	moved  int                   // how many of those below are
	best   *contender            // of those below, while all are compared
	won    int                   // the length of turns.levels when it last won or joined: later levels are those of others
}

// leaf is the leaf that comes first below the contender, or the contender itself.
func (c *contender) leaf() *contender {
	for len(c.below.Items) > 0 {
		c = c.below.Items[0]
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
func (t *turns) stand(c *contender, inner [][]*contender) [][]*contender {
	up := c.above
	if up.best == nil && up.depth >= 0 {
		inner[up.depth] = append(inner[up.depth], up)
	}
	if up.best == nil || t.comesBefore(c, c.elected(), up.best, up.best.elected()) {
		up.best = c
	}
	return inner
}

// before compares siblings, each with a leaf below it. One without a job comes last.
func (t *turns) comesBefore(a, leafOfA, b, leafOfB *contender) bool {
	x, y := leafOfA.first, leafOfB.first
	if x == nil || y == nil {
		return x != nil
	}
	return t.order.siblings(Bid{a.queue, x}, Bid{b.queue, y}) < 0
}

// newSiblings is an empty heap of contenders. Its functions serve all heaps of the tree.
func (t *turns) newSiblings() heap.Heap[*contender] {
	return heap.Heap[*contender]{
		Before: func(a, b *contender) bool { return t.comesBefore(a, a.leaf(), b, b.leaf()) },
		Moved:  func(c *contender, place int) { c.place = place },
	}
}
