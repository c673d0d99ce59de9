// Package neighbours counts, for each domain, the placed tasks that a term of job affinity
// matches, so that one node can be checked without looking at the whole cluster. The
// affinity plugins share it because a plugin may not import another one. It is not a
// plugin itself.
//
// A task counts while it is on a node or has a reservation there. A task that was evicted
// does not count: other tasks may be placed already, and State lets a task that must be
// away from it wait until it has released its room. If it does not release its room in
// time, it counts again.
package neighbours

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Counter keeps the counts of one plugin from session to session. Open counts the nodes
// again that changed since the last session. During a session, the counts follow
// its events. A Counter is not safe for concurrent use.
type Counter struct {
	// CountAntiTerms is set if AntiTermsMatching is used. The Counter then also counts the
	// required anti-terms of placed jobs, for which it looks at every placed task.
	CountAntiTerms bool

	opened    *engine.Session // the last session
	view      cluster.View
	known     uint64 // version of the view for which the counts are correct
	session   uint64
	terms     map[string]*Term // terms that Term was called with, by key
	antiTerms map[string]*Term // required anti-terms of placed jobs, by key
	changes   uint64
	handler   engine.EventHandler // of the view handled, kept from session to session
	handled   cluster.View
}

// Open updates the counts and registers handlers that follow the session.
func (c *Counter) Open(s *engine.Session) {
	c.Reopen(s)
	if c.handler.AllocateFunc == nil || c.handled != s.View {
		c.handled, c.handler = s.View, engine.EventHandler{AllocateFunc: c.countOn(s.View, +1), DeallocateFunc: c.countOn(s.View, -1)}
	}
	s.Hooks.AddEventHandler(c.handler)
}

// Reopen is like Open, for a session that has the handlers of the last one. It may be called
// before Open, for the same session.
func (c *Counter) Reopen(s *engine.Session) {
	if c.opened == s {
		return
	}
	c.opened = s
	if c.view != s.View {
		c.view, c.known = s.View, 0
		c.terms, c.antiTerms = map[string]*Term{}, map[string]*Term{}
	}
	c.session++
	c.changes++
	for key, t := range c.terms {
		if t.lastUsed+1 < c.session { // it was not used in the last session
			delete(c.terms, key)
		}
	}
	if c.CountAntiTerms || len(c.terms) > 0 {
		c.view.Recent().Nodes(c.known, c.recount)
	}
	c.known = c.view.Version()
}

// countOn returns a function that adds to the counts of a session on the view.
func (c *Counter) countOn(view cluster.View, by int) func(*engine.Event) {
	return func(e *engine.Event) {
		// The condition is false if a session was opened on another State, or if the node
		// was removed, so that its tasks do not count.
		if slot := e.Node.Slot(); c.view == view && slot < view.Recent().Slots() && view.At(slot) == e.Node {
			c.add(e.Task, e.Node, by)
		}
	}
}

// Changes returns a number that grows whenever the result of AntiTermsMatching may change.
func (c *Counter) Changes() uint64 { return c.changes }

// Term returns the count for one of the job's terms. The first call for a term looks at
// the whole cluster.
func (c *Counter) Term(j *cluster.Job, t *cluster.JobTerm) *Term {
	key := keyOf(j, t)
	term := c.terms[key]
	if term == nil {
		term = newTerm(key, j, t)
		c.terms[key] = term
		for _, n := range c.view.Nodes() {
			for _, task := range n.Tasks {
				if task.KeepsRoom() && term.Matches(task.Job) {
					term.add(n, +1)
				}
			}
		}
	}
	term.lastUsed = c.session
	return term
}

// AntiTermsMatching returns the required anti-terms of placed jobs that match the job, in
// the order of their keys. The job may not be placed in a domain where one of them counts
// a task.
func (c *Counter) AntiTermsMatching(j *cluster.Job) []*Term {
	var out []*Term
	for _, t := range c.antiTerms {
		if t.Matches(j) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *Term) int { return strings.Compare(a.key, b.key) })
	return out
}

// recount counts the node in the slot again, for all terms.
func (c *Counter) recount(slot int) {
	for _, t := range c.terms {
		t.removeNode(slot)
	}
	for key, t := range c.antiTerms {
		if t.removeNode(slot); len(t.perNode) == 0 {
			delete(c.antiTerms, key)
		}
	}
	n := c.view.At(slot)
	if n == nil {
		return
	}
	for _, t := range n.Tasks {
		if t.KeepsRoom() {
			c.add(t, n, +1)
		}
	}
}

func (c *Counter) add(task *cluster.Task, n *cluster.Node, by int) {
	for _, t := range c.terms {
		if t.Matches(task.Job) {
			t.add(n, by)
		}
	}
	if !c.CountAntiTerms {
		return
	}
	for i := range task.Job.Affinity {
		// No other job matches a term that keeps the tasks of one replica apart.
		if t := &task.Job.Affinity[i]; t.Anti && t.Weight == 0 && !t.KeepsReplicaApart() {
			c.addAntiTerm(task.Job, t, n, by)
		}
	}
}

func (c *Counter) addAntiTerm(j *cluster.Job, t *cluster.JobTerm, n *cluster.Node, by int) {
	key := keyOf(j, t)
	term := c.antiTerms[key]
	if term == nil {
		term = newTerm(key, j, t)
		c.antiTerms[key] = term
		c.changes++
	}
	if term.add(n, by); len(term.perNode) == 0 {
		delete(c.antiTerms, key)
		c.changes++
	}
}
