package engine

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/heap"
)

// contender is a queue that has jobs in line, or that has a descendant with jobs in line.
type contender struct {
	queue  *cluster.Queue
	above  *contender            // the parent queue, or the root
	below  heap.Heap[*contender] // the child queues that are in line; the first one has the next turn
	line   line                  // the jobs of the queue, if it is a leaf
	first  *cluster.Job          // the head of the line; nil if no job is left
	depth  int                   // 0 for a queue without a parent; -1 for the root, which is not a queue
	place  int                   // its index in above.below or in turns.leaves; -1 if it is not in line
	marked bool                  // it must be compared with its siblings again
	moved  int                   // how many of its children are marked
	best   *contender            // the first of its children, while all leaves are compared
	won    int                   // the length of turns.levels when it last won or joined; later levels are of other queues
}

// leaf returns the leaf below the contender that has the next turn by the heaps, or the
// contender itself if it is a leaf.
func (c *contender) leaf() *contender {
	for len(c.below.Items) > 0 {
		c = c.below.Items[0]
	}
	return c
}

// elected returns the leaf below the contender that has the next turn by the best fields, or
// the contender itself if it is a leaf.
func (c *contender) elected() *contender {
	for c.best != nil {
		c = c.best
	}
	return c
}

// bid returns the bid of a leaf: its queue with the first job of its line.
func (c *contender) bid() Bid { return Bid{c.queue, c.first} }

// compareWithSiblings compares the contender with the best of its siblings so far, and replaces that one
// if the contender comes first. If it is the first of its siblings, its parent is added to
// inner, which lists queues by their depth.
func (t *turns) compareWithSiblings(c *contender, inner [][]*contender) [][]*contender {
	up := c.above
	if up.best == nil && up.depth >= 0 {
		inner[up.depth] = append(inner[up.depth], up)
	}
	if up.best == nil || t.comesBefore(c, c.elected(), up.best, up.best.elected()) {
		up.best = c
	}
	return inner
}

// comesBefore reports whether a comes before its sibling b. Each is compared with the first
// job of the given leaf below it. A queue without a job comes last.
func (t *turns) comesBefore(a, leafOfA, b, leafOfB *contender) bool {
	x, y := leafOfA.first, leafOfB.first
	if x == nil || y == nil {
		return x != nil
	}
	return t.order.siblings(Bid{a.queue, x}, Bid{b.queue, y}) < 0
}

// newSiblings returns an empty heap of contenders. All heaps of the tree share its functions.
func (t *turns) newSiblings() heap.Heap[*contender] {
	return heap.Heap[*contender]{
		Before: func(a, b *contender) bool { return t.comesBefore(a, a.leaf(), b, b.leaf()) },
		Moved:  func(c *contender, place int) { c.place = place },
	}
}
