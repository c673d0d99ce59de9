package disruptionbudget

import (
	"github.com/berth-project/berth/cluster"
)

// counts holds, for each budget, how many of the tasks that it covers run, and how many
// there should be. All jobs are counted at the first call of covering, and again after a
// budget or a queue was changed. Other calls count only the jobs that have changed since the
// last call. The counts are kept across sessions.
type counts struct {
	view     cluster.View
	revision uint64               // Recent.QueueSpecsVersion when budgets was filled; it grows if a budget or a queue changes
	known    uint64               // Recent.JobsVersion up to which jobs are counted
	budgets  map[string][]*budget // by namespace
	perJob   []*jobCounts         // by slot of the job; nil if no budget covers the job
}

// budget is a budget with two counts of the tasks that it covers: those that run, and those
// that have not ended, which all should run.
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

// covering brings the counts up to date and returns the budgets that cover the job.
func (c *counts) covering(s cluster.View, j *cluster.Job) []*budget {
	if c.view != s || c.revision != s.Recent().QueueSpecsVersion() {
		c.reset(s)
	}
	if c.known != s.Recent().JobsVersion() {
		s.Recent().Jobs(c.known, c.recount)
		c.known = s.Recent().JobsVersion()
	}
	if counted := c.perJob[j.Slot()]; counted != nil && counted.job == j {
		return counted.budgets
	}
	return nil
}

// reset reads the budgets and sets all counts to 0. Because known is then 0, covering counts
// all jobs next.
func (c *counts) reset(s cluster.View) {
	*c = counts{view: s, revision: s.Recent().QueueSpecsVersion(), budgets: map[string][]*budget{}}
	for _, b := range s.Budgets() {
		c.budgets[b.Namespace] = append(c.budgets[b.Namespace], &budget{Budget: b})
	}
}

// recount replaces what the slot adds to the counts. Since it was last counted, the job in
// the slot may have changed, been removed, or been replaced by another job.
func (c *counts) recount(slot int) {
	for slot >= len(c.perJob) {
		c.perJob = append(c.perJob, nil)
	}
	j, s := c.view.JobAt(slot), c.perJob[slot]
	// The job may be covered by other budgets than before if its spec has changed, since the
	// labels are a part of it, or if the job was retired, which does not change the version of
	// its spec. What it added to the former budgets is then subtracted.
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
	running, tasks := 0, j.Tasks() // their number changes if the job takes another alternative
	for _, t := range tasks {
		if t.Runs() {
			running++
		}
	}
	s.count(running, len(tasks)-j.Ended())
}

// covered returns counts of 0 for the job, with the budgets that cover it. It returns nil if
// no budget does.
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

// count sets what the job adds to the counts of its budgets.
func (s *jobCounts) count(running, desired int) {
	for _, b := range s.budgets {
		b.running += running - s.running
		b.desired += desired - s.desired
	}
	s.running, s.desired = running, desired
}
