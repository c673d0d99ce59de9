package disruptionbudget

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// counts are what every budget covers, counted when a session first asks and
// kept in step from then on.
//
// Events only tell that something about a job has changed: a task that is placed
// may be bound or nominated, and a gang that has to wait turns from one into the
// other later. So the jobs that events name are counted anew, when somebody asks.
type counts struct {
	state *cluster.State
	jobs  map[*cluster.Job]*share // of jobs that some budget covers; nil: nobody has asked yet
	stale []*share
}

// budget is a budget and what stands in it.
type budget struct {
	*cluster.Budget
	running, desired int
}

// share is what one job adds to its budgets.
type share struct {
	job              *cluster.Job
	budgets          []*budget
	running, desired int
	stale            bool
}

// watch keeps counts in step with the session.
func watch(s *engine.Session) *counts {
	c := &counts{state: s.State}
	s.AddEventHandler(engine.EventHandler{AllocateFunc: c.changed, DeallocateFunc: c.changed})
	return c
}

// of are the budgets that cover the job, with their counts as of now.
func (c *counts) of(j *cluster.Job) []*budget {
	if c.jobs == nil {
		c.begin()
	}
	for _, s := range c.stale {
		s.count()
	}
	c.stale = c.stale[:0]
	if s := c.jobs[j]; s != nil {
		return s.budgets
	}
	return nil
}

// begin finds out who is in which budget.
func (c *counts) begin() {
	c.jobs = map[*cluster.Job]*share{}
	byNamespace := map[string][]*budget{}
	for _, b := range c.state.Budgets() {
		byNamespace[b.Namespace] = append(byNamespace[b.Namespace], &budget{Budget: b})
	}
	for _, j := range c.state.Jobs() {
		s := &share{job: j}
		for _, b := range byNamespace[j.Namespace] {
			if b.Covers(j) {
				s.budgets = append(s.budgets, b)
			}
		}
		if len(s.budgets) > 0 {
			c.jobs[j] = s
			s.count()
		}
	}
}

// changed hears of a task that came or went.
func (c *counts) changed(e *engine.Event) {
	if s := c.jobs[e.Job]; s != nil && !s.stale {
		s.stale = true
		c.stale = append(c.stale, s)
	}
}

// count brings the job's part in its budgets up to date. Another form of the
// job may have another number of tasks.
func (s *share) count() {
	running, tasks := 0, s.job.Tasks()
	for _, t := range tasks {
		if t.Runs() {
			running++
		}
	}
	for _, b := range s.budgets {
		b.running += running - s.running
		b.desired += len(tasks) - s.desired
	}
	s.running, s.desired, s.stale = running, len(tasks), false
}
