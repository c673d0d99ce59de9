package oracle

import "fmt"

// request is a request of room for one minimum of a form.
type request struct {
	kind       Kind
	form       *form
	minimum    []*task
	amounts    vector // what the minimum requests
	lastResort bool   // whether rules 4 and 5, the last resort, may be used
}

func newRequest(k Kind, f *form, minimum []*task, lastResort bool) *request {
	return &request{kind: k, form: f, minimum: minimum, amounts: sum(minimum), lastResort: lastResort}
}

// plan has the tasks that are evicted and the tasks that move for a request.
type plan struct {
	request        *request
	evicted, moved taskSet
	cost           cost
}

// anyPlan is the bound for plans that may evict and move any task.
var anyPlan = plan{evicted: allTasks, moved: allTasks}

// victims returns the tasks that are evicted or move.
func (p *plan) victims() taskSet { return p.evicted | p.moved }

// contains reports whether the plan evicts and moves all tasks that o evicts and moves.
func (p *plan) contains(o *plan) bool { return o.evicted&^p.evicted == 0 && o.moved&^p.moved == 0 }

// describe returns the plan as text, or "" if it is for no request.
func (p *plan) describe(o *objects) string {
	if p.request == nil {
		return ""
	}
	return fmt.Sprintf("%+v, evicted: %s, moved: %s, for: %s", p.cost, list(o.members(p.evicted)), list(o.members(p.moved)), list(p.request.minimum))
}

// victim is a set of tasks that are evicted together: one surplus task, or all remaining
// tasks of a job.
type victim struct {
	form  *form
	tasks []*task
	whole bool // all remaining tasks of the job
}

// held returns what the tasks of the victim hold, or held before they were evicted.
func (v *victim) held() vector { return sum(v.tasks) }

// started returns when the task started or, if the whole job is evicted, when its first
// task started. That task counts also if it is evicted before the others.
func (v *victim) started() int64 {
	first := v.tasks[0].task.Started
	if v.whole {
		for _, t := range v.form.tasks {
			if t.task.Runs() {
				first = min(first, t.task.Started)
			}
		}
	}
	return first
}

// minRun returns how long a task of the queue must have run before the plugin may evict or
// move it. If the queue has no such time, the time of its nearest ancestor with one holds.
func minRun(plugin Kind, q *queue) int64 {
	for ; q != nil; q = q.parent {
		if plugin == Reclaim && q.minRunBeforeReclaim > 0 {
			return q.minRunBeforeReclaim
		}
		if plugin != Reclaim && q.minRunBeforePreempt > 0 {
			return q.minRunBeforePreempt
		}
	}
	return 0
}
