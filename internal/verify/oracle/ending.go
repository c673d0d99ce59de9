package oracle

import "slices"

// ending is the State that a plan leads to, against which its victims are judged: the
// evicted tasks are not in the placement, and the minimum of the request counts as placed in
// addition to it. Tasks that move hold what they held.
type ending struct {
	objects   *objects
	placement *placement
	plan      *plan
	evictedBy map[*task]Kind // the plugin that evicts each task; nil if any plugin may
	before    []vector       // what each queue held before the plan
}

// request returns the request of the plan.
func (e *ending) request() *request { return e.plan.request }

// queues returns what the queues hold without the evicted tasks and without the minimum.
func (e *ending) queues() *queueUse { return e.placement.queues }

// withMinimum returns what each queue holds with the minimum.
func (e *ending) withMinimum() []vector {
	used := e.queues().snapshot()
	for _, q := range e.request().form.branch {
		used[q.index] = used[q.index].plus(e.request().amounts, +1)
	}
	return used
}

// mayUse reports whether the plugin is the one that evicts the tasks, or one that may.
func (e *ending) mayUse(plugin Kind, tasks []*task) bool {
	return e.request().kind.has(plugin) && (e.evictedBy == nil || !slices.ContainsFunc(tasks, func(t *task) bool { return e.evictedBy[t] != plugin }))
}

// isContested reports whether the resource is divided among queues, the minimum requests it
// and a victim that held the given amounts frees some of it.
func (e *ending) isContested(held vector, r int) bool {
	return e.objects.divided[r] && e.request().amounts[r] > 0 && held[r] > 0
}

// everyContested reports whether at least one resource is contested, and the condition is
// true for all contested resources.
func (e *ending) everyContested(held vector, is func(r int) bool) bool {
	some := false
	for r := range held {
		if e.isContested(held, r) {
			if some = true; !is(r) {
				return false
			}
		}
	}
	return some
}

// largestVictim returns how much of the resource the largest victim in the queue held. A
// victim is one task, or all evicted tasks of a job that is evicted as a whole.
func (e *ending) largestVictim(q *queue, r int) (most int64) {
	for _, f := range e.objects.jobs {
		if !slices.Contains(f.branch, q) {
			continue
		}
		evicted := e.objects.members(e.plan.evicted & f.set())
		for _, t := range evicted {
			most = max(most, t.amounts[r])
		}
		if e.placement.bound(f) == 0 {
			most = max(most, sum(evicted)[r])
		}
	}
	return most
}
