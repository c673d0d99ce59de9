package disruptionbudget

import (
	"github.com/berth-project/berth/cluster"
)

// counts are what every budget covers, counted when a session first asks and kept
// in step with the jobs that change from then on, also from session to session.
type counts struct {
	view     cluster.View
	revision uint64               // of the budgets
	known    uint64               // version of the jobs
	budgets  map[string][]*budget // by namespace
	shares   []*share             // by slot of the job; nil: no budget covers it
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
}

// of are the budgets that cover the job, with their counts as of now.
func (c *counts) of(s cluster.View, j *cluster.Job) []*budget {
	if c.view != s || c.revision != s.Recent().Terms() {
		c.begin(s)
	}
	if c.known != s.Recent().JobsVersion() {
		s.Recent().Jobs(c.known, c.look)
		c.known = s.Recent().JobsVersion()
	}
	if share := c.shares[j.Slot()]; share != nil && share.job == j {
		return share.budgets
	}
	return nil
}

// begin forgets all that was counted.
func (c *counts) begin(s cluster.View) {
	*c = counts{view: s, revision: s.Recent().Terms(), budgets: map[string][]*budget{}}
	for _, b := range s.Budgets() {
		c.budgets[b.Namespace] = append(c.budgets[b.Namespace], &budget{Budget: b})
	}
}

// look counts the job in the slot anew.
func (c *counts) look(slot int) {
	for slot >= len(c.shares) {
		c.shares = append(c.shares, nil)
	}
	j, s := c.view.JobAt(slot), c.shares[slot]
	if s != nil && (s.job != j || j.SpecVersion() > c.known) { // other labels are in other budgets
		s.count(0, 0)
		s, c.shares[slot] = nil, nil
	}
	if j == nil {
		return
	}
	if s == nil {
		if s = c.cover(j); s == nil {
			return
		}
		c.shares[slot] = s
	}
	running, tasks := 0, j.Tasks() // another form of the job may have another number of tasks
	for _, t := range tasks {
		if t.Runs() {
			running++
		}
	}
	s.count(running, len(tasks)-j.Ended())
}

// cover finds the budgets that the job is in; nil if there is none.
func (c *counts) cover(j *cluster.Job) *share {
	s := &share{job: j}
	for _, b := range c.budgets[j.Namespace] {
		if b.Covers(j) {
			s.budgets = append(s.budgets, b)
		}
	}
	if len(s.budgets) == 0 {
		return nil
	}
	return s
}

// count sets the job's part in its budgets.
func (s *share) count(running, desired int) {
	for _, b := range s.budgets {
		b.running += running - s.running
		b.desired += desired - s.desired
	}
	s.running, s.desired = running, desired
}
