package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// stateBefore describes State before a session.
type stateBefore struct {
	queues    map[string]queueUse
	nodes     map[*cluster.Task]*cluster.Node // where each task was placed
	startTime map[*cluster.Task]int64         // of each running task
	placed    map[*cluster.Job]bool           // the minimum was placed
	running   map[*cluster.Job]bool           // the minimum was running; reservations do not count
	tasks     map[*cluster.Job]int            // number of tasks
	earmarks  map[string]earmarkBefore        // by node
	earmarked map[string]*cluster.Earmarked   // by job
}

// queueUse is what a queue uses, and the part of it that is not preemptible.
type queueUse struct{ used, firm cluster.Resources }

// describeState returns a description that does not change with State.
func describeState(state *cluster.State) *stateBefore {
	b := &stateBefore{
		queues: map[string]queueUse{}, nodes: map[*cluster.Task]*cluster.Node{}, startTime: map[*cluster.Task]int64{},
		placed: map[*cluster.Job]bool{}, running: map[*cluster.Job]bool{}, tasks: map[*cluster.Job]int{}, earmarks: map[string]earmarkBefore{}, earmarked: map[string]*cluster.Earmarked{},
	}
	for _, q := range state.Queues() {
		b.queues[q.Name] = queueUse{slices.Clone(q.Used), slices.Clone(q.UsedByFirm)}
	}
	for _, j := range state.Jobs() {
		b.placed[j], b.running[j], b.tasks[j] = j.HasMinimum(), minimumRuns(j), len(j.Tasks())
		for _, t := range j.Tasks() {
			b.nodes[t] = t.At()
			if t.Runs() {
				b.startTime[t] = t.Started
			}
		}
	}
	for _, j := range cluster.EarmarksOf(state.View()).Jobs() {
		b.earmarked[j.ID] = j.Earmarked // State replaces it, and does not change it
		for _, r := range j.Earmarked.Rooms {
			b.earmarks[r.Node] = earmarkBefore{j.ID, r, j.Earmarked.Start}
		}
	}
	return b
}

// minimumRuns reports whether the job's minimum is running.
func minimumRuns(j *cluster.Job) bool {
	return j.Chosen >= 0 && j.Alternatives[j.Chosen].Enough(func(t *cluster.Task) bool { return t.Runs() })
}

// sessionCheck checks the outcome of one session, before its decisions are carried
// out.
type sessionCheck struct {
	engine  *engine.Engine
	state   *cluster.State
	before  *stateBefore
	options engine.Options
	out     *engine.Outcome
	history *history
	counts  *Counts
	// withoutEvictions returns an engine without the plugins that evict.
	withoutEvictions func() (*engine.Engine, error)
}

// run makes all checks and returns the first failure.
func (c *sessionCheck) run() error {
	for _, check := range []func() error{
		c.checkNames,
		func() error { return checkLimits(c.state, c.before.queues) },
		c.checkGangs,
		c.checkBindings,
		func() error { return checkTopology(c.state, c.before.nodes) },
		c.checkRefusals,
		c.checkEvictions,
		c.checkPatience,
		c.checkEarmarks,
		func() error { return checkSets(c.state, true) },
		c.checkGroups,
		c.checkRankings,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkNames checks that the tasks and jobs that the outcome names exist.
func (c *sessionCheck) checkNames() error {
	for i := range c.out.Decisions {
		if d := &c.out.Decisions[i]; c.state.Task(d.Task) == nil {
			return fmt.Errorf("%s of %s, which does not exist", d.Action, d.Task.ID())
		}
	}
	for _, r := range c.out.Refusals {
		if c.state.Job(r.Job) == nil {
			return fmt.Errorf("%s was refused, and does not exist", r.Job)
		}
	}
	for _, r := range c.out.RetirementOrders {
		for _, x := range r.Jobs {
			if c.state.Job(x.Job) == nil {
				return fmt.Errorf("%s was ranked, and does not exist", x.Job)
			}
		}
	}
	return nil
}

// checkRefusals checks that no task of a refused job is placed, and that the counts of
// rejections add up to the number of nodes.
func (c *sessionCheck) checkRefusals() error {
	for _, r := range c.out.Refusals {
		if r.Surplus {
			continue
		}
		job := c.state.Job(r.Job)
		for _, t := range job.Tasks() {
			if job.Chosen < 0 && t.Node != nil {
				return fmt.Errorf("%s was refused, yet %s is on %s", r.Job, t.ID, t.Node.Name)
			}
		}
		if r.Reason == "" || len(r.Attempts) == 0 {
			return fmt.Errorf("%s was refused without a reason", r.Job)
		}
		for _, a := range r.Attempts {
			sum := 0
			for _, rejections := range a.Counts {
				sum += rejections.Nodes
			}
			if a.Before == nil && len(a.Groups) == 0 && (a.Level == "" || len(a.Domains) > 0) && sum != a.Nodes {
				return fmt.Errorf("%s: rejections of %d nodes were counted, there are %d", r.Job, sum, a.Nodes)
			}
		}
	}
	return nil
}

// checkEvictions checks the victims of the session.
func (c *sessionCheck) checkEvictions() error {
	check := &evictionCheck{state: c.state, now: c.options.Now, before: c.before, out: c.out, history: c.history, counts: c.counts}
	return check.run()
}

// checkPatience checks that each job that a patient session did not try has a refusal
// from an earlier session, and could not have been placed. It does so only if the
// session made no decision, because State is then as it was in the job's turn.
func (c *sessionCheck) checkPatience() error {
	if !c.options.Patient || !decidesNothing(c.out) {
		return nil
	}
	var s *engine.Session
	for _, j := range c.state.Pending() {
		if slices.Contains(c.out.Tried, j.ID) {
			continue
		}
		refusal := c.engine.Refusal(j)
		if refusal == nil {
			return fmt.Errorf("%s is pending, and has no refusal", j.ID)
		}
		if c.counts.Untried++; s == nil {
			e, err := c.withoutEvictions()
			if err != nil {
				return err
			}
			s = e.Open(c.state.Clone(), engine.Options{Now: c.options.Now})
		}
		stmt, job := s.Begin(), s.View.Job(j.ID)
		placed := job.Placed()
		s.Place(stmt, job)
		if n := job.Placed(); n > placed {
			return fmt.Errorf("%s was not tried (%s), and there is room for %d of its tasks", job.ID, refusal.Reason, n-placed)
		}
		stmt.Discard()
	}
	return nil
}

// decidesNothing reports whether a session made no decision and withdrew no
// reservation and no earmark.
func decidesNothing(out *engine.Outcome) bool {
	return len(out.Decisions) == 0 && !slices.ContainsFunc(out.Events, func(e engine.Record) bool {
		return e.Kind == engine.Withdrawn || e.Kind == engine.Earmarked && len(e.Rooms) == 0
	})
}

// describeTasks lists the tasks of a job with their status.
func describeTasks(j *cluster.Job) string {
	out := ""
	for _, t := range j.Tasks() {
		out += fmt.Sprintf("%s %s", t.Name, t.Status)
		if t.Landing() != nil {
			out += " moving"
		}
		out += "; "
	}
	return out
}
