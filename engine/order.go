package engine

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

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
func (s *Session) siblings(a, b Bid) int {
	for i := range s.hooks.queueOrders {
		if c := s.hooks.queueOrders[i].fn(a, b); c != 0 {
			return c
		}
	}
	return strings.Compare(a.Queue.Name, b.Queue.Name)
}

// compareQueues compares any two leaves. Hooks that compare siblings are asked
// about those where the branches of the two part.
func (s *Session) compareQueues(a, b Bid) int {
	siblings := 0
	x, y := s.State.Fork(a.Queue, b.Queue)
	for i := range s.hooks.queueOrders {
		h := &s.hooks.queueOrders[i]
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
	if x != nil && siblings > 0 && siblings == len(s.hooks.queueOrders) {
		return strings.Compare(x.Name, y.Name)
	}
	return strings.Compare(a.Queue.Name, b.Queue.Name)
}

// Lacks are the tasks that the job's turn is for, in the first form that would be
// tried: those that its minimum needs or, where it has its minimum, the next one.
func (s *Session) Lacks(job *cluster.Job) []*cluster.Task {
	for _, forms := range choices(job) {
		if lacks := s.Lacking(&forms[0]); len(lacks) > 0 {
			return lacks
		}
		if next := s.nextPending(&forms[0]); next != nil {
			return []*cluster.Task{next}
		}
		break
	}
	return nil
}

// nextPending is the first pending task in the order they are placed; nil: there is none.
func (s *Session) nextPending(alt *cluster.Alternative) *cluster.Task {
	var next *cluster.Task
	for _, t := range alt.Tasks {
		if t.Status == cluster.Pending && (next == nil || s.CompareTasks(t, next) < 0) {
			next = t
		}
	}
	return next
}
