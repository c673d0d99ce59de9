package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// order says whose turn it is: it compares queues, and the jobs of one queue.
type order struct {
	view   cluster.View
	hooks  *Hooks
	search Search
	fault  *fault
}

// turn is a job that waits in the line of its queue, for its minimum or for one task
// more. It keeps its place in the line while the job itself changes.
type turn struct {
	job     *cluster.Job
	surplus int // how many tasks beyond its minimum it has; -1: it lacks its minimum
}

func turnOf(j *cluster.Job) turn {
	if !j.Stands() {
		return turn{j, -1}
	}
	return turn{j, max(0, j.Placed()-j.Alternatives[j.Chosen].Min)}
}

// compareTurns orders the line of a queue. Of jobs of one priority those come first
// that lack their minimum, then those with the least surplus, so that it is dealt in turn.
func (o *order) compareTurns(a, b turn) int {
	for _, h := range o.hooks.jobPriorities {
		if c := h.fn(a.job, b.job); c != 0 {
			return c
		}
	}
	if a.surplus != b.surplus {
		return cmp.Compare(a.surplus, b.surplus)
	}
	for _, h := range o.hooks.jobOrders {
		if c := h.fn(a.job, b.job); c != 0 {
			return c
		}
	}
	return strings.Compare(a.job.ID, b.job.ID)
}

// trueFirst puts what something is true of before what it is not true of.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// lineUp puts the jobs into the lines of their queues.
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

// siblings compares queues with the same parent.
func (o *order) siblings(a, b Bid) int {
	for i := range o.hooks.queueOrders {
		if c := o.hooks.queueOrders[i].fn(a, b); c != 0 {
			return c
		}
	}
	return strings.Compare(a.Queue.Name, b.Queue.Name)
}

// freezes reports whether bids can be compared as they stood before.
func (o *order) freezes() bool {
	return !slices.ContainsFunc(o.hooks.queueOrders, func(h hook[SiblingOrder]) bool { return h.freeze == nil })
}

// freeze prepares to compare other bids of siblings with the bid as it stands now.
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

// against prepares to compare many leaves with one, as all stand now.
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

// compareQueues compares any two leaves. Hooks that compare siblings are asked
// about those where the branches of the two part.
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
