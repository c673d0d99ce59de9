package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// order compares queues, and the jobs of one queue, to decide which job has the next turn.
type order struct {
	view   cluster.View
	hooks  *Hooks
	search Search
	fault  *fault
}

// turn is a pending job in the line of its queue. It keeps the number of surplus tasks that
// it was sorted by, so that its place in the line is stable while the job changes.
type turn struct {
	job     *cluster.Job
	surplus int // how many surplus tasks are placed; -1: the job lacks its minimum
}

func turnOf(j *cluster.Job) turn {
	if !j.HasMinimum() {
		return turn{j, -1}
	}
	return turn{j, max(0, j.Placed()-j.Alternatives[j.Chosen].Min)}
}

// compareTurns orders the line of a queue. Among jobs of equal priority, jobs that lack
// their minimum come first, then jobs with fewer surplus tasks, so that surplus is dealt
// to jobs in turn.
func (o *order) compareTurns(a, b turn) int {
	for i := range o.hooks.jobPriorities {
		h := &o.hooks.jobPriorities[i]
		if c := h.fn(a.job, b.job); c != 0 {
			return c
		}
	}
	if a.surplus != b.surplus {
		return cmp.Compare(a.surplus, b.surplus)
	}
	for i := range o.hooks.jobOrders {
		h := &o.hooks.jobOrders[i]
		if c := h.fn(a.job, b.job); c != 0 {
			return c
		}
	}
	return strings.Compare(a.job.ID, b.job.ID)
}

// trueFirst compares two booleans and orders true before false.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// lineUp sorts the jobs into the lines of their queues.
func (o *order) lineUp(jobs []*cluster.Job) *turns {
	byQueue := map[*cluster.Queue]*jobList{}
	var queues []*cluster.Queue
	for _, j := range jobs {
		q := o.view.Queue(j.Queue)
		if byQueue[q] == nil {
			byQueue[q] = &jobList{order: o}
			queues = append(queues, q)
		}
		byQueue[q].turns = append(byQueue[q].turns, turnOf(j))
	}
	t := o.newTurns()
	for _, q := range queues {
		slices.SortFunc(byQueue[q].turns, o.compareTurns)
		t.addQueue(q, byQueue[q])
	}
	return t
}

// siblings compares two queues with the same parent, or two bids of one queue.
func (o *order) siblings(a, b Bid) int {
	for i := range o.hooks.queueOrders {
		if c := o.hooks.queueOrders[i].fn(a, b); c != 0 {
			return c
		}
	}
	return strings.Compare(a.Queue.Name, b.Queue.Name)
}

// freezes reports whether every comparison of queues has a FrozenOrder, so that bids can be
// compared as they were earlier.
func (o *order) freezes() bool {
	return !slices.ContainsFunc(o.hooks.queueOrders, func(h hook[SiblingOrder]) bool { return h.freeze == nil })
}

// freeze returns a function that compares bids of siblings with the bid as it is now, even
// after later decisions.
func (o *order) freeze(bid Bid) func(other Bid) int {
	frozen := make([]func(Bid) int, len(o.hooks.queueOrders))
	for i := range frozen {
		frozen[i] = o.hooks.queueOrders[i].freeze(bid)
	}
	return func(other Bid) int {
		for _, fn := range frozen {
			if c := fn(other); c != 0 {
				return c
			}
		}
		return strings.Compare(bid.Queue.Name, other.Queue.Name)
	}
}

// compareWith returns a function that compares the bid with the bids of other leaves. It
// is faster than compareQueues if it is called many times.
func (o *order) compareWith(bid Bid) func(other Bid) int {
	slow := func(other Bid) int { return o.compareQueues(bid, other) }
	if !o.branched() || !o.freezes() {
		return slow
	}
	frozen, above := o.freeze(bid), o.view.Parent(bid.Queue)
	return func(other Bid) int {
		if other.Queue != bid.Queue && o.view.Parent(other.Queue) == above {
			return frozen(other)
		}
		return slow(other)
	}
}

// compareQueues compares any two leaves of the tree of queues. Hooks that compare siblings
// are called with the two ancestors of the leaves that are siblings.
func (o *order) compareQueues(a, b Bid) int {
	siblings := 0
	x, y := o.view.Fork(a.Queue, b.Queue)
	for i := range o.hooks.queueOrders {
		h := &o.hooks.queueOrders[i]
		c := 0
		switch {
		case !h.siblings:
			c = h.fn(a, b)
		case x != nil:
			siblings++
			c = h.fn(Bid{x, a.Job}, Bid{y, b.Job})
		}
		if c != 0 {
			return c
		}
	}
	if x != nil && siblings > 0 && siblings == len(o.hooks.queueOrders) {
		return strings.Compare(x.Name, y.Name)
	}
	return strings.Compare(a.Queue.Name, b.Queue.Name)
}
