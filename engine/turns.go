package engine

import (
	stdheap "container/heap"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// line is the jobs of one queue that wait for their turn.
type line interface {
	// next takes the first job out of the line; nil where none is left.
	next() *cluster.Job
}

// list is a line that is known from the beginning.
type list []*cluster.Job

func (l *list) next() *cluster.Job {
	if len(*l) == 0 {
		return nil
	}
	job := (*l)[0]
	*l = (*l)[1:]
	return job
}

// turns decides which queue gives the next job. Queues are compared where their
// branches part, so they form a tree of heaps that follows the tree of queues: what
// is decided for a job moves the queues of its branch, and no others. Where a hook
// compares queues in another way, all are compared anew for every job.
type turns struct {
	session *Session
	root    contender
	bySlot  []*contender // by slot of the queue
	leaves  []*contender // in line and in no heap: all, where there is no tree
	scans   int          // of the leaves so far
	moved   []*contender // compared otherwise than before
	known   uint64       // version of the queues that the heaps are in step with
	tree    bool
}

// newTurns begins without any queue in line.
func (s *Session) newTurns() *turns {
	t := &turns{session: s, known: s.State.QueuesVersion(), tree: s.branched()}
	t.root.below.turns = t
	return t
}

// branched reports whether queues are compared where their branches part, and nowhere else.
func (s *Session) branched() bool {
	return len(s.hooks.queueOrders) > 0 && !slices.ContainsFunc(s.hooks.queueOrders, func(h hook[QueueOrderFn]) bool { return !h.siblings })
}

// reopen begins another session, over the same tree of queues.
func (t *turns) reopen(s *Session) {
	*t = turns{session: s, root: t.root, bySlot: t.bySlot, leaves: t.leaves, moved: t.moved, tree: s.branched()}
}

// disperse takes all queues out of line.
func (t *turns) disperse() {
	for _, c := range t.leaves {
		c.place, c.loose = -1, false
	}
	t.leaves, t.scans = t.leaves[:0], 0
	t.root.disperse()
	t.known = t.session.State.QueuesVersion()
}

func (c *contender) disperse() {
	for _, below := range c.below.list {
		below.place = -1
		below.disperse()
	}
	c.below.list = c.below.list[:0]
}

// contender finds the queue's place in the tree, or makes it.
func (t *turns) contender(q *cluster.Queue) *contender {
	for q.Slot() >= len(t.bySlot) {
		t.bySlot = append(t.bySlot, nil)
	}
	c := t.bySlot[q.Slot()]
	if c == nil {
		c = &contender{queue: q, above: &t.root, place: -1}
		c.below.turns = t
		if up := t.session.State.Parent(q); up != nil {
			c.above = t.contender(up)
			c.depth = c.above.depth + 1
		}
		t.bySlot[q.Slot()] = c
	}
	return c
}

// maxScans is how often the leaves are compared one by one before they are put
// into heaps: where most have their turn for one job alone, that costs less.
const maxScans = 3

// join puts a queue in line.
func (t *turns) join(q *cluster.Queue, l line) {
	c := t.contender(q)
	c.line = l
	if c.place < 0 {
		c.place, c.loose = len(t.leaves), true
		t.leaves = append(t.leaves, c)
		t.scans = 0
	}
}

// pile puts the leaves into the heaps.
func (t *turns) pile() {
	for _, c := range t.leaves {
		c.place, c.loose = -1, false
		for ; c != &t.root && c.place < 0; c = c.above {
			c.above.below.Push(c)
			c.above.moved++
		}
	}
	for _, c := range t.leaves {
		for up := c.above; up != nil; up = up.above {
			if up.moved > 0 {
				stdheap.Init(&up.below)
				up.moved = 0
			}
		}
	}
	t.leaves = t.leaves[:0]
}

// leave takes a queue out of line, and those above it that have no other.
func (t *turns) leave(c *contender) {
	if c.loose {
		last := len(t.leaves) - 1
		t.leaves[c.place] = t.leaves[last]
		t.leaves[c.place].place = c.place
		t.leaves, c.place, c.loose = t.leaves[:last], -1, false
		return
	}
	for ; c != &t.root && len(c.below.list) == 0; c = c.above {
		stdheap.Remove(&c.above.below, c.place)
	}
}

// next is the job whose turn it is, nil where no queue has any left.
func (t *turns) next() *cluster.Job {
	for {
		c := t.first()
		if c == nil || t.session.err != nil {
			return nil
		}
		if job := c.line.next(); job != nil {
			return job
		}
		t.leave(c)
	}
}

// first is the queue whose turn it is; nil where none is in line.
func (t *turns) first() *contender {
	if !t.tree {
		return t.scan(t.leaves)
	}
	if t.scans++; t.scans > maxScans && len(t.leaves) > 0 {
		t.repair() // before others come in
		t.pile()
	}
	first := t.top()
	for _, c := range t.leaves {
		if first == nil || t.compare(c, first) < 0 {
			first = c
		}
	}
	if t.session.options.Search == Twin && first != nil {
		if slow := t.scan(append(t.inLine(&t.root, nil), t.leaves...)); slow != first {
			t.session.fail("engine", "the heaps say that it is the turn of queue %s, comparing all says %s", first.queue.Name, slow.queue.Name)
		}
	}
	return first
}

// top is the first of those in heaps.
func (t *turns) top() *contender {
	t.repair()
	c := &t.root
	for len(c.below.list) > 0 {
		c = c.below.list[0]
	}
	if c == &t.root {
		return nil
	}
	return c
}

// compare compares leaves where their branches part.
func (t *turns) compare(a, b *contender) int {
	for a.depth > b.depth {
		a = a.above
	}
	for b.depth > a.depth {
		b = b.above
	}
	for a.above != b.above {
		a, b = a.above, b.above
	}
	return t.session.siblings(a.queue, b.queue)
}

// scan compares all queues in line. It is what the heaps are checked against.
func (t *turns) scan(leaves []*contender) *contender {
	var first *contender
	for _, c := range leaves {
		if first == nil || t.session.compareQueues(c.queue, first.queue) < 0 {
			first = c
		}
	}
	return first
}

// inLine are the leaves below the contender that are in line.
func (t *turns) inLine(c *contender, out []*contender) []*contender {
	if c.line != nil && len(c.below.list) == 0 {
		out = append(out, c)
	}
	for _, below := range c.below.list {
		out = t.inLine(below, out)
	}
	return out
}

// repair moves the queues whose use has changed to their new places. Where several
// of a heap have, the heap is made anew: each would be compared with others that
// are out of place.
func (t *turns) repair() {
	state := t.session.State
	if t.known == state.QueuesVersion() {
		return
	}
	state.ChangedQueues(t.known, func(q *cluster.Queue) {
		if q.Slot() < len(t.bySlot) {
			if c := t.bySlot[q.Slot()]; c != nil && c.place >= 0 && !c.loose {
				t.moved = append(t.moved, c)
			}
		}
	})
	t.known = state.QueuesVersion()
	for _, c := range t.moved {
		c.above.moved++
	}
	for _, c := range t.moved {
		switch up := c.above; up.moved {
		case 0:
		case 1:
			stdheap.Fix(&up.below, c.place)
		default:
			stdheap.Init(&up.below)
		}
		c.above.moved = 0
	}
	clear(t.moved)
	t.moved = t.moved[:0]
}
