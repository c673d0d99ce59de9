package disruptionbudget

import (
	"github.com/berth-project/berth/cluster"
)

// counts holds how many tasks every budget covers. All jobs are counted once, when a
// session first needs the counts. The counts are then kept across sessions, and only jobs
// that changed are counted again.
type counts struct {
	view     cluster.View
	revision uint64               // Recent.QueueSpecsVersion when budgets was filled; it grows if a budget or a queue changes
	known    uint64               // Recent.JobsVersion up to which jobs are counted
	budgets  map[string][]*budget // by namespace
	perJob   []*jobCounts         // by slot of the job; nil if no budget covers it
}

// budget is a budget with the number of tasks that it covers: how many run, and how
// many there should be.
type budget struct {
	*cluster.Budget
	running, desired int
}

// jobCounts is what one job adds to the counts of its budgets.
type jobCounts struct {
	job              *cluster.Job
	budgets          []*budget
	running, desired int
}

// covering returns the budgets that cover the job, with up-to-date counts.
func (c *counts) covering(s cluster.View, j *cluster.Job) []*budget {
	if c.view != s || c.revision != s.Recent().QueueSpecsVersion() {
		c.reset(s)
	}
	if c.known != s.Recent().JobsVersion() {
		s.Recent().Jobs(c.known, c.recount)
		c.known = s.Recent().JobsVersion()
	}
	if share := c.perJob[j.Slot()]; share != nil && share.job == j {
		return share.budgets
	}
	return nil
}

// reset starts again with counts of 0.
func (c *counts) reset(s cluster.View) {
	*c = counts{view: s, revision: s.Recent().QueueSpecsVersion(), budgets: map[string][]*budget{}}
	for _, b := range s.Budgets() {
		c.budgets[b.Namespace] = append(c.budgets[b.Namespace], &budget{Budget: b})
	}
}

// recount counts the job in the slot again.
func (c *counts) recount(slot int) {
	for slot >= len(c.perJob) {
		c.perJob = append(c.perJob, nil)
	}
	j, s := c.view.JobAt(slot), c.perJob[slot]
	// A spec may have other labels, and no budget covers a retired job. To retire a job does
	// not change the version of its spec.
	if s != nil && (s.job != j || j.Retired || j.SpecVersion() > c.known) {
		s.count(0, 0)
		s, c.perJob[slot] = nil, nil
	}
	if j == nil {
		return
	}
	if s == nil {
		if s = c.covered(j); s == nil {
			return
		}
		c.perJob[slot] = s
	}
	running, tasks := 0, j.Tasks() // another alternative of the job may have another number of tasks
	for _, t := range tasks {
		if t.Runs() {
			running++
		}
	}
	s.count(running, len(tasks)-j.Ended())
}

// covered finds the budgets that cover the job. It returns nil if there is none.
func (c *counts) covered(j *cluster.Job) *jobCounts {
	s := &jobCounts{job: j}
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

// count sets what the job adds to its budgets.
func (s *jobCounts) count(running, desired int) {
	for _, b := range s.budgets {
		b.running += running - s.running
		b.desired += desired - s.desired
	}
	s.running, s.desired = running, desired
}
