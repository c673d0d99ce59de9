package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// SessionLoop runs sessions one after the other on a cluster in which no job arrives or ends and
// nothing else changes. After each session the evicted tasks stop, an hour passes, and
// Job.Displaced is cleared, so that only the rules of docs/designs/0004 can make the
// sessions stop evicting.
type SessionLoop struct {
	State    *cluster.State
	Sessions int // how many sessions were run
	Evicted  int // how many tasks were evicted or moved

	engine  *engine.Engine
	options engine.Options
	guarded bool                // whether Job.Displaced is kept
	seen    map[string]int      // by arrangement: the session after which tasks were placed like this
	evicted map[[2]string][]int // the sessions in which tasks of the first job were evicted for the second
	lines   []string            // the decisions of all sessions
}

// NewSessionLoop returns a loop that starts with the State, which it changes. If guarded is
// set, Job.Displaced is not cleared.
func NewSessionLoop(s *cluster.State, patient, guarded bool) (*SessionLoop, error) {
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		return nil, err
	}
	c := &SessionLoop{State: s, engine: e, guarded: guarded, options: engine.Options{Patient: patient, Now: s.Now()}, seen: map[string]int{}, evicted: map[[2]string][]int{}}
	c.seen[c.arrangement()] = 0
	return c, nil
}

// Run runs sessions until two in a row make no decision. It returns an error if that takes
// more than most sessions, or if every task is placed as after an earlier session.
func (c *SessionLoop) Run(most int) error {
	for quiet := 0; quiet < 2; {
		if c.Sessions == most {
			return fmt.Errorf("the sessions still make decisions after %d sessions", most)
		}
		busy, err := c.step()
		if err != nil {
			return fmt.Errorf("session %d: %w", c.Sessions, err)
		}
		if quiet++; busy {
			quiet = 0
		}
	}
	return nil
}

// step runs one session. It reports whether the session made a decision, or tasks were still
// releasing or nominated after it.
func (c *SessionLoop) step() (busy bool, err error) {
	c.Sessions++
	c.options.Now += 60 * minute // longer than any task is protected
	s := c.engine.Open(c.State, c.options)
	out, err := s.Run()
	s.Close()
	if err != nil {
		return false, err
	}
	if err := c.record(&out); err != nil {
		return false, err
	}
	decided := len(out.Decisions) > 0 || slices.ContainsFunc(out.Events, func(e engine.Record) bool { return e.Kind == engine.Withdrawn })
	stopped, err := c.stopEvicted()
	if err != nil {
		return false, err
	}
	if err := c.clearDisplaced(); err != nil {
		return false, err
	}
	if decided && !c.guarded { // with Job.Displaced, equal arrangements do not lead to equal decisions
		now := c.arrangement()
		if before, known := c.seen[now]; known {
			return false, fmt.Errorf("every task is where it was after session %d", before)
		}
		c.seen[now] = c.Sessions
	}
	return decided || stopped || len(c.State.View().Nominated()) > 0, nil
}

// stopEvicted stops the evicted tasks, and reports whether there were any.
func (c *SessionLoop) stopEvicted() (any bool, err error) {
	for _, t := range c.State.View().Releasing() {
		if err := c.State.Apply(cluster.TaskSeen{Task: t.Ref()}); err != nil {
			return false, err
		}
		any = true
	}
	return any, nil
}

// clearDisplaced clears Job.Displaced of all jobs. No Change can do that, so a new State is made
// from a snapshot, and a new engine for it.
func (c *SessionLoop) clearDisplaced() error {
	if c.guarded || !slices.ContainsFunc(c.State.Jobs(), func(j *cluster.Job) bool { return len(j.Displaced) > 0 }) {
		return nil
	}
	snapshot := c.State.Snapshot()
	for i := range snapshot.Jobs {
		snapshot.Jobs[i].Job.OwnDetails().Displaced = nil
	}
	var err error
	if c.State, err = snapshot.State(); err != nil {
		return err
	}
	c.engine, err = c.engine.Another()
	return err
}

// arrangement lists the location and status of every placed task.
func (c *SessionLoop) arrangement() string {
	var b strings.Builder
	for _, j := range c.State.Jobs() {
		for _, t := range j.Tasks() {
			if t.Node != nil {
				fmt.Fprintln(&b, t.ID, t.Status, t.Node.Name, t.Claims)
			}
		}
	}
	return b.String()
}

// record records the decisions of a session. It returns an error if a task is bound and
// evicted in the same session.
func (c *SessionLoop) record(out *engine.Outcome) error {
	bound := map[cluster.TaskRef]bool{}
	pairs := map[[2]string]bool{}
	for _, e := range out.Events {
		line := ""
		switch d := e.Decision; {
		case e.Kind == engine.Withdrawn:
			line = fmt.Sprintf("%s is not nominated any more", c.withQueue(e.Task.ID()))
		case d == nil:
			continue
		case d.Action == engine.EvictTask && d.Landing != "":
			line = fmt.Sprintf("%s moves from %s to %s for %s", c.withQueue(d.Task.ID()), d.Node, d.Landing, c.withQueue(d.For))
		case d.Action == engine.EvictTask:
			line = fmt.Sprintf("%s is evicted from %s for %s (%s)", c.withQueue(d.Task.ID()), d.Node, c.withQueue(d.For), d.Reason)
		case d.Action == engine.Bind:
			line = fmt.Sprintf("%s is bound to %s", c.withQueue(d.Task.ID()), d.Node)
		default:
			line = fmt.Sprintf("%s is nominated to %s", c.withQueue(d.Task.ID()), d.Node)
		}
		c.lines = append(c.lines, fmt.Sprintf("%3d: %s", c.Sessions, line))
		switch d := e.Decision; {
		case d == nil:
		case d.Action == engine.Bind:
			bound[d.Task] = true
		case d.Action == engine.EvictTask:
			c.Evicted++
			pairs[[2]string{d.Task.Job, d.For}] = true
			if bound[d.Task] {
				return fmt.Errorf("%s is bound and evicted in one session", d.Task.ID())
			}
		}
	}
	for p := range pairs {
		c.evicted[p] = append(c.evicted[p], c.Sessions)
	}
	return nil
}

// withQueue returns the ID of a task or job with the name of its queue.
func (c *SessionLoop) withQueue(id string) string {
	for _, j := range c.State.Jobs() {
		if j.ID == id || strings.HasPrefix(id, j.ID+"/") {
			return fmt.Sprintf("%s of %s", id, j.Queue)
		}
	}
	return id
}

// String lists the decisions, and the jobs that were evicted for the same job in several
// sessions.
func (c *SessionLoop) String() string {
	var repeated []string
	for p, sessions := range c.evicted {
		if len(sessions) > 1 {
			repeated = append(repeated, fmt.Sprintf("%s is evicted for %s in sessions %v", c.withQueue(p[0]), c.withQueue(p[1]), sessions))
		}
	}
	slices.Sort(repeated)
	const most = 60
	lines := c.lines
	if len(lines) > most {
		lines = append([]string{fmt.Sprintf("... %d lines", len(lines)-most)}, lines[len(lines)-most:]...)
	}
	return strings.Join(slices.Concat(lines, repeated), "\n")
}
