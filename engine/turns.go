package engine

import (
	stdheap "container/heap"
	"slices"
	"strings"

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

// contender is a queue that has jobs in line, or queues below it that do.
type contender struct {
	queue *cluster.Queue
	above *contender
	below siblings // in line, the first at the top of the heap
	line  line     // of a leaf
	depth int
	loose bool // in no heap
	place int  // among those below the queue above, or among the leaves; -1: not in line
	moved int  // how many of those below are compared otherwise than before
}

// siblings are a heap of contenders.
type siblings struct {
	turns *turns
	list  []*contender
}

func (h *siblings) Len() int { return len(h.list) }
func (h *siblings) Less(i, j int) bool {
	return h.turns.session.siblings(h.list[i].queue, h.list[j].queue) < 0
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

// Order sorts pending jobs by when their turn comes, as long as none is placed:
// those that want their minimum first.
func (s *Session) Order(jobs []*cluster.Job) []*cluster.Job {
	out := make([]*cluster.Job, 0, len(jobs))
	for _, stands := range [...]bool{false, true} {
		var part []*cluster.Job
		for _, j := range jobs {
			if j.Stands() == stands {
				part = append(part, j)
			}
		}
		for j := range s.each(part) {
			out = append(out, j)
		}
	}
	return out
}

// each yields the jobs one at a time: the queue whose turn it is gives its first job.
func (s *Session) each(jobs []*cluster.Job) func(yield func(*cluster.Job) bool) {
	byQueue := map[*cluster.Queue]*list{}
	var queues []*cluster.Queue
	for _, j := range jobs {
		q := s.State.Queue(j.Queue)
		if byQueue[q] == nil {
			byQueue[q] = &list{}
			queues = append(queues, q)
		}
		*byQueue[q] = append(*byQueue[q], j)
	}
	for _, l := range byQueue {
		slices.SortStableFunc(*l, s.compareJobs)
	}
	t := s.newTurns()
	for _, q := range queues {
		t.join(q, byQueue[q])
	}
	return func(yield func(*cluster.Job) bool) {
		for job := t.next(); job != nil && yield(job); job = t.next() {
		}
	}
}

// siblings compares queues with the same parent.
func (s *Session) siblings(a, b *cluster.Queue) int {
	for i := range s.hooks.queueOrders {
		if c := s.hooks.queueOrders[i].fn(a, b); c != 0 {
			return c
		}
	}
	return strings.Compare(a.Name, b.Name)
}

// compareQueues compares any two leaves. Hooks that compare siblings are asked
// about those where the branches of the two part.
func (s *Session) compareQueues(a, b *cluster.Queue) int {
	siblings := 0
	x, y := s.State.Fork(a, b)
	for i := range s.hooks.queueOrders {
		h := &s.hooks.queueOrders[i]
		c := 0
		switch {
		case !h.siblings:
			c = h.fn(a, b)
		case x != nil:
			siblings++
			c = h.fn(x, y)
		}
		if c != 0 {
			return c
		}
	}
	if x != nil && siblings > 0 && siblings == len(s.hooks.queueOrders) {
		return strings.Compare(x.Name, y.Name)
	}
	return strings.Compare(a.Name, b.Name)
}
