package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// line is the jobs of one queue that have not had their turn.
type line interface {
	// head returns the first job in the line; nil if none is left. The head changes only
	// when a job is taken out of the line, or after a decision about a job of the queue.
	head() *cluster.Job
	// next takes the first job out of the line and reports whether it is to be tried. It
	// returns nil if no job is left that is to be tried. If alone is set, this is the only
	// line, and jobs that are not to be tried are skipped.
	next(alone bool) (job *cluster.Job, try bool)
}

// jobList is a line in which every job is to be tried.
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

// insert adds a turn at its place in the order of the line.
func (l *jobList) insert(t turn) {
	i, _ := slices.BinarySearchFunc(l.turns, t, l.order.compareTurns)
	l.turns = slices.Insert(l.turns, i, t)
}

// turns decides which queue places the next job. Siblings in the tree of queues are compared,
// each with the job that it would place next. So queues are kept in a tree of heaps that
// mirrors the tree of queues, and a decision about a job changes the places of only the job's
// queue and the queues above it. If a hook compares queues that are not siblings
// (AddQueueOrder), all queues are compared for every job.
type turns struct {
	order        *order
	root         contender
	bySlot       []*contender // by slot of the queue; nil: the queue was not in line yet
	leaves       []*contender // the leaf queues in line, as long as heaps are not in use
	scans        int          // how often all leaves were compared one by one in this session
	inHeaps      bool         // heaps are in use
	last         *contender   // the queue of which a job was taken last: it has another head now
	changed      []*contender // queues that may compare differently than before
	known        uint64       // the version of the queues that the heaps reflect
	siblingsOnly bool         // all hooks compare siblings, so that heaps can be used

	ranked    rankedLanes     // further lanes that are in line
	flat      bool            // all queues in line are siblings, and elections are allowed
	elections int             // how many elections were held in this session
	levels    []func(Bid) int // compare with the highest bid of each lane that won an election, as the bid was then
}

// newTurns returns turns without any queue in line.
func (o *order) newTurns() *turns {
	t := &turns{order: o, known: o.view.Recent().QueuesVersion(), siblingsOnly: o.branched(), flat: o.mayElect()}
	t.root.below = t.newSiblings()
	t.root.depth = -1
	return t
}

// branched reports whether all hooks that compare queues compare siblings.
func (o *order) branched() bool {
	return len(o.hooks.queueOrders) > 0 && !slices.ContainsFunc(o.hooks.queueOrders, func(h hook[SiblingOrder]) bool { return !h.siblings })
}

// reopen prepares for another session with the same tree of queues.
func (t *turns) reopen(o *order) {
	*t = turns{order: o, root: t.root, bySlot: t.bySlot, leaves: t.leaves, changed: t.changed, siblingsOnly: o.branched(), flat: o.mayElect(), levels: t.levels[:0]}
}

// clear removes all queues from the line.
func (t *turns) clear() {
	for _, c := range t.leaves {
		c.place = -1
	}
	for _, c := range t.changed {
		c.marked, c.above.moved = false, 0
	}
	clear(t.levels)
	t.leaves, t.changed, t.levels, t.scans, t.inHeaps, t.last = t.leaves[:0], t.changed[:0], t.levels[:0], 0, false, nil
	t.ranked = rankedLanes{}
	t.root.clear()
	t.known = t.order.view.Recent().QueuesVersion()
}

// clear empties the heaps of the queue and of all queues below it.
func (c *contender) clear() {
	for _, below := range c.below.Items {
		below.place = -1
		below.clear()
	}
	c.below.Items = c.below.Items[:0]
}

// contender returns the contender of the queue. If there is none, it makes one, and one for
// each queue above it.
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

// maxScans is how often the leaves are compared one by one before they are put into heaps. If
// a session tries only a few jobs, that is faster than building heaps.
const maxScans = 3

// addQueue adds a queue to those in line, with the line of its jobs.
func (t *turns) addQueue(q *cluster.Queue, l line) {
	c := t.contender(q)
	c.line, c.first, c.won = l, l.head(), len(t.levels)
	if _, parks := l.(*lane); !parks || c.depth > 0 {
		t.flat = false
	}
	switch {
	case c.place >= 0:
		t.markChanged(c)
	case t.inHeaps:
		t.pushToHeaps(c)
	default:
		c.place = len(t.leaves)
		t.leaves = append(t.leaves, c)
	}
}

// buildHeaps puts the leaves into heaps.
func (t *turns) buildHeaps() {
	leaves := t.leaves
	t.leaves, t.inHeaps, t.known = nil, true, t.order.view.Recent().QueuesVersion()
	for _, c := range leaves {
		c.place = -1
		t.pushToHeaps(c)
	}
	t.leaves = leaves[:0]
}

// pushToHeaps appends a queue, and the queues above it that are in no heap, to their heaps. They
// get their places when the heaps are repaired.
func (t *turns) pushToHeaps(c *contender) {
	for up := c; up != &t.root && up.place < 0; up = up.above {
		up.above.below.Append(up)
	}
	t.markChanged(c)
}

// removeQueue removes a queue from the line, and the queues above it that have no other queue in
// line. Apart from the queue itself, the heaps must be in order.
func (t *turns) removeQueue(c *contender) {
	if !t.inHeaps {
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

// next returns the job that has the next turn; nil if no job is left.
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

// take takes the first job that is to be tried out of the queue's line. It stops and returns
// nil if a job that is not to be tried was passed and another queue may come first now.
func (t *turns) take(c *contender) *cluster.Job {
	for {
		was := c.first
		job, try := c.line.next(t.alone())
		if job == nil {
			t.removeQueue(c)
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

// mustCompareAgain reports whether the queue must be compared with other queues again, because
// its bid with the present first job comes after its bid with the former one.
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

// alone reports whether exactly one queue is in line.
func (t *turns) alone() bool {
	if !t.inHeaps {
		return len(t.leaves) == 1
	}
	c := &t.root
	for len(c.below.Items) == 1 {
		c = c.below.Items[0]
	}
	return len(c.below.Items) == 0
}

// onlyLine returns the line of the only queue that is in line. It returns nil if there are
// several queues or none, and also while heaps or ranked lanes are in use.
func (t *turns) onlyLine() line {
	if len(t.leaves) != 1 || t.inHeaps || t.ranked.lanes != nil {
		return nil
	}
	return t.leaves[0].line
}

// front returns the queue that has the next turn; nil if no queue in line has a job.
func (t *turns) front() *contender {
	if c := t.last; c != nil {
		t.last, c.first = nil, c.line.head()
		t.markChanged(c)
	}
	var front *contender
	switch {
	case !t.siblingsOnly:
		front = t.scan()
	case !t.inHeaps && t.scans < maxScans:
		t.scans++
		t.known = t.order.view.Recent().QueuesVersion()
		front = t.firstLeaf(t.leaves)
	default:
		if !t.inHeaps {
			t.buildHeaps()
		}
		front = t.top()
		if t.order.search == Twin && front != nil {
			t.checkHeaps(front)
		}
	}
	if front != nil && front.first == nil {
		return nil // queues without a job come last, so no queue has one
	}
	return front
}

// checkHeaps fails the session if comparing all queues in line gives another result than the
// heaps, or if the tree of contenders differs from the tree of queues in the State.
func (t *turns) checkHeaps(front *contender) {
	all := t.leavesInLine(&t.root, nil)
	if slow := t.firstLeaf(all); slow != front && slow.first != nil {
		t.order.fault.fail("engine", "the heaps give the next turn to queue %s, but comparing all queues gives it to %s", front.queue.Name, slow.queue.Name)
	}
	for _, c := range all {
		for ; c != &t.root; c = c.above {
			if t.order.view.Queue(c.queue.Name) != c.queue || t.order.view.Parent(c.queue) != c.above.queue {
				t.order.fault.fail("engine", "queue %s has another place in the tree of turns than in the tree of queues", c.queue.Name)
			}
		}
	}
}

// top returns the first leaf of the heaps; nil if they are empty.
func (t *turns) top() *contender {
	t.repair()
	if c := t.root.leaf(); c != &t.root {
		return c
	}
	return nil
}

// scan compares all leaves with each other and returns the first; nil if none has a job.
func (t *turns) scan() *contender {
	var first *contender
	for _, c := range t.leaves {
		if c.first != nil && (first == nil || t.order.compareQueues(c.bid(), first.bid()) < 0) {
			first = c
		}
	}
	return first
}

// firstLeaf returns the leaf that has the next turn among those given. From the bottom of the
// tree up, each queue is compared with its siblings, with the job of the first leaf below it.
// Twin sessions check the heaps against it.
func (t *turns) firstLeaf(leaves []*contender) *contender {
	deepest := 0
	for _, c := range leaves {
		deepest = max(deepest, c.depth)
	}
	inner := make([][]*contender, deepest+1) // by depth
	for depth := deepest; depth >= 0; depth-- {
		for _, c := range leaves {
			if c.depth == depth {
				inner = t.compareWithSiblings(c, inner)
			}
		}
		for _, c := range inner[depth] {
			inner = t.compareWithSiblings(c, inner)
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

// leavesInLine appends the leaves below the contender that are in line.
func (t *turns) leavesInLine(c *contender, out []*contender) []*contender {
	if c != &t.root && len(c.below.Items) == 0 {
		out = append(out, c)
	}
	for _, below := range c.below.Items {
		out = t.leavesInLine(below, out)
	}
	return out
}

// markChanged notes that comparisons of the queue, and of the queues above it, may give another
// result than before.
func (t *turns) markChanged(c *contender) {
	if !t.inHeaps {
		return
	}
	for ; c != &t.root && !c.marked; c = c.above {
		c.marked = true
		c.above.moved++
		t.changed = append(t.changed, c)
	}
}

// repair moves the queues that were marked to their new places, from the bottom of the tree up.
// If several queues of a heap were marked, the whole heap is built again, because each of them
// would be compared with queues that are not in their places.
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
		case c.place < 0: // it is not in line any more
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
