package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// line is the jobs of one queue that wait for their turn.
type line interface {
	// head is the first job in the line; nil where none is left. It stays the same
	// until it is taken, or its queue's last job is decided.
	head() *cluster.Job
	// next takes the first job out of the line, nil where none is left that is to be
	// tried, and reports whether it is to be tried. Where the line is alone, jobs that
	// are not to be tried are left out.
	next(alone bool) (job *cluster.Job, try bool)
}

// jobList is a line in which all jobs are to be tried.
type jobList struct {
	order *order
	turns []turn
}

func (l *jobList) head() *cluster.Job {
	if len(l.turns) == 0 {
		return nil
	}
	return l.turns[0].job
}

func (l *jobList) next(bool) (*cluster.Job, bool) {
	job := l.head()
	if job != nil {
		l.turns = l.turns[1:]
	}
	return job, job != nil
}

// insert puts a turn in its place in the line.
func (l *jobList) insert(t turn) {
	i, _ := slices.BinarySearchFunc(l.turns, t, l.order.compareTurns)
	l.turns = slices.Insert(l.turns, i, t)
}

// turns decides which queue gives the next job. Queues are compared where their
// branches part, each with the job that it would give, so they form a tree of heaps
// that follows the tree of queues: what is decided for a job moves the queues of its
// branch, and no others. Where a hook compares queues in another way, all are
// compared anew for every job.
type turns struct {
	order        *order
	root         contender
	bySlot       []*contender // by slot of the queue
	leaves       []*contender // in line, while there are no heaps
	scans        int          // of the leaves so far
	piled        bool         // the queues in line are in heaps
	last         *contender   // whose job was taken last: it has another head now
	changed      []*contender // compared otherwise than before
	known        uint64       // version of the queues that the heaps are in step with
	siblingsOnly bool

	flat      bool            // all in line are lanes of siblings, and may be elected
	elections int             // so far
	levels    []func(Bid) int // the dearest bids of the lanes that were elected, as they stood
}

// newTurns begins without any queue in line.
func (o *order) newTurns() *turns {
	t := &turns{order: o, known: o.view.Recent().QueuesVersion(), siblingsOnly: o.branched(), flat: o.mayElect()}
	t.root.below = t.newSiblings()
	t.root.depth = -1
	return t
}

// branched reports whether queues are compared where their branches part, and nowhere else.
func (o *order) branched() bool {
	return len(o.hooks.queueOrders) > 0 && !slices.ContainsFunc(o.hooks.queueOrders, func(h hook[SiblingOrder]) bool { return !h.siblings })
}

// reopen begins another session, over the same tree of queues.
func (t *turns) reopen(o *order) {
	*t = turns{order: o, root: t.root, bySlot: t.bySlot, leaves: t.leaves, changed: t.changed, siblingsOnly: o.branched(), flat: o.mayElect(), levels: t.levels[:0]}
}

// disperse takes all queues out of line.
func (t *turns) disperse() {
	for _, c := range t.leaves {
		c.place = -1
	}
	for _, c := range t.changed {
		c.marked, c.above.moved = false, 0
	}
	clear(t.levels)
	t.leaves, t.changed, t.levels, t.scans, t.piled, t.last = t.leaves[:0], t.changed[:0], t.levels[:0], 0, false, nil
	t.root.clear()
	t.known = t.order.view.Recent().QueuesVersion()
}

func (c *contender) clear() {
	for _, below := range c.below.Items {
		below.place = -1
		below.clear()
	}
	c.below.Items = c.below.Items[:0]
}

// contender finds the queue's place in the tree, or makes it.
func (t *turns) contender(q *cluster.Queue) *contender {
	for q.Slot() >= len(t.bySlot) {
		t.bySlot = append(t.bySlot, nil)
	}
	c := t.bySlot[q.Slot()]
	if c == nil {
		c = &contender{queue: q, above: &t.root, place: -1}
		c.below.Before, c.below.Moved = t.root.below.Before, t.root.below.Moved
		if up := t.order.view.Parent(q); up != nil {
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

// addQueue puts a queue in line.
func (t *turns) addQueue(q *cluster.Queue, l line) {
	c := t.contender(q)
	c.line, c.first, c.won = l, l.head(), len(t.levels)
	if _, parks := l.(*lane); !parks || c.depth > 0 {
		t.flat = false
	}
	switch {
	case c.place >= 0:
		t.markChanged(c)
	case t.piled:
		t.pushToHeaps(c)
	default:
		c.place = len(t.leaves)
		t.leaves = append(t.leaves, c)
	}
}

// buildHeaps puts the leaves into heaps.
func (t *turns) buildHeaps() {
	leaves := t.leaves
	t.leaves, t.piled, t.known = nil, true, t.order.view.Recent().QueuesVersion()
	for _, c := range leaves {
		c.place = -1
		t.pushToHeaps(c)
	}
	t.leaves = leaves[:0]
}

// pushToHeaps puts a queue, and those above it that are in no heap, at the end of their
// heaps. They get their places when the heaps are repaired.
func (t *turns) pushToHeaps(c *contender) {
	for up := c; up != &t.root && up.place < 0; up = up.above {
		up.above.below.Append(up)
	}
	t.markChanged(c)
}

// leave takes a queue out of line, and those above it that have no other. The heaps
// are in order but for the queue itself.
func (t *turns) leave(c *contender) {
	if !t.piled {
		last := len(t.leaves) - 1
		t.leaves[c.place] = t.leaves[last]
		t.leaves[c.place].place = c.place
		t.leaves, c.place = t.leaves[:last], -1
		return
	}
	for ; c != &t.root && len(c.below.Items) == 0; c = c.above {
		c.above.below.Remove(c.place)
	}
	t.markChanged(c)
}

// next is the job whose turn it is, nil where no queue has any left.
func (t *turns) next() *cluster.Job {
	if job := t.elected(); job != nil || t.elects() {
		return job
	}
	t.advance()
	for {
		c := t.front()
		if c == nil || t.order.fault.err != nil {
			return nil
		}
		if job := t.take(c); job != nil {
			return job
		}
	}
}

// take takes the first job that is to be tried out of the queue's line, as long as it
// is the queue's turn. Nil: it is that of another, perhaps.
func (t *turns) take(c *contender) *cluster.Job {
	for {
		was := c.first
		job, try := c.line.next(t.alone())
		if job == nil {
			t.leave(c)
			return nil
		}
		if try {
			t.last = c
			return job
		}
		if c.first = c.line.head(); c.first == nil || t.mustCompareAgain(c, was) {
			t.markChanged(c)
			return nil
		}
	}
}

// mustCompareAgain reports whether the queue is to be compared with others again, since it would
// give another job than before.
func (t *turns) mustCompareAgain(c *contender, was *cluster.Job) bool {
	if !t.siblingsOnly {
		return true
	}
	for up := c; up != &t.root; up = up.above {
		if t.order.siblings(Bid{up.queue, c.first}, Bid{up.queue, was}) > 0 {
			return true
		}
	}
	return false
}

// alone reports whether one queue is in line.
func (t *turns) alone() bool {
	if !t.piled {
		return len(t.leaves) == 1
	}
	c := &t.root
	for len(c.below.Items) == 1 {
		c = c.below.Items[0]
	}
	return len(c.below.Items) == 0
}

// front is the queue whose turn it is; nil where none is in line.
func (t *turns) front() *contender {
	if c := t.last; c != nil {
		t.last, c.first = nil, c.line.head()
		t.markChanged(c)
	}
	var front *contender
	switch {
	case !t.siblingsOnly:
		front = t.scan()
	case !t.piled && t.scans < maxScans:
		t.scans++
		t.known = t.order.view.Recent().QueuesVersion()
		front = t.firstLeaf(t.leaves)
	default:
		if !t.piled {
			t.buildHeaps()
		}
		front = t.top()
		if t.order.search == Twin && front != nil {
			t.checkHeaps(front)
		}
	}
	if front != nil && front.first == nil {
		return nil // it comes after all that have a job
	}
	return front
}

// checkHeaps holds the heaps against comparing all that are in line, and the tree against
// that of the State.
func (t *turns) checkHeaps(front *contender) {
	all := t.leavesInLine(&t.root, nil)
	if slow := t.firstLeaf(all); slow != front && slow.first != nil {
		t.order.fault.fail("engine", "the heaps say that it is the turn of queue %s, comparing all says %s", front.queue.Name, slow.queue.Name)
	}
	for _, c := range all {
		for ; c != &t.root; c = c.above {
			if t.order.view.Queue(c.queue.Name) != c.queue || t.order.view.Parent(c.queue) != c.above.queue {
				t.order.fault.fail("engine", "queue %s is elsewhere in the tree of turns than in that of queues", c.queue.Name)
			}
		}
	}
}

// top is the first of those in heaps.
func (t *turns) top() *contender {
	t.repair()
	if c := t.root.leaf(); c != &t.root {
		return c
	}
	return nil
}

// scan compares all leaves with each other.
func (t *turns) scan() *contender {
	var first *contender
	for _, c := range t.leaves {
		if c.first != nil && (first == nil || t.order.compareQueues(c.bid(), first.bid()) < 0) {
			first = c
		}
	}
	return first
}

// firstLeaf finds the leaf whose turn it is among those given: from the bottom of the
// tree up, each queue is compared with its siblings, with the job of the leaf that
// comes first below it. It is what the heaps are checked against.
func (t *turns) firstLeaf(leaves []*contender) *contender {
	deepest := 0
	for _, c := range leaves {
		deepest = max(deepest, c.depth)
	}
	inner := make([][]*contender, deepest+1) // by depth
	for depth := deepest; depth >= 0; depth-- {
		for _, c := range leaves {
			if c.depth == depth {
				inner = t.stand(c, inner)
			}
		}
		for _, c := range inner[depth] {
			inner = t.stand(c, inner)
		}
	}
	front := t.root.elected()
	t.root.best = nil
	for _, list := range inner {
		for _, c := range list {
			c.best = nil
		}
	}
	if front == &t.root {
		return nil
	}
	return front
}

// leavesInLine are the leaves below the contender that are in line.
func (t *turns) leavesInLine(c *contender, out []*contender) []*contender {
	if c != &t.root && len(c.below.Items) == 0 {
		out = append(out, c)
	}
	for _, below := range c.below.Items {
		out = t.leavesInLine(below, out)
	}
	return out
}

// markChanged notes that the queue is compared otherwise than before, and so are those
// above it.
func (t *turns) markChanged(c *contender) {
	if !t.piled {
		return
	}
	for ; c != &t.root && !c.marked; c = c.above {
		c.marked = true
		c.above.moved++
		t.changed = append(t.changed, c)
	}
}

// repair moves the queues that are compared otherwise than before to their new
// places, from the bottom of the tree up. Where several of a heap are, the heap is
// made anew: each would be compared with others that are out of place.
func (t *turns) repair() {
	if state := t.order.view; t.known != state.Recent().QueuesVersion() {
		state.Recent().Queues(t.known, func(q *cluster.Queue) {
			if q.Slot() < len(t.bySlot) {
				if c := t.bySlot[q.Slot()]; c != nil && c.place >= 0 {
					t.markChanged(c)
				}
			}
		})
		t.known = state.Recent().QueuesVersion()
	}
	slices.SortStableFunc(t.changed, func(a, b *contender) int { return b.depth - a.depth })
	for _, c := range t.changed {
		switch up := c.above; {
		case c.place < 0: // it has left
		case up.moved == 1:
			up.below.Fix(c.place)
		case up.moved > 1:
			up.below.Init()
			up.moved = 0
			continue
		}
	}
	for _, c := range t.changed {
		c.marked, c.above.moved = false, 0
	}
	clear(t.changed)
	t.changed = t.changed[:0]
}
