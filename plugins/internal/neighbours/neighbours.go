// Package neighbours counts the placed tasks that a term of job affinity
// matches, domain by domain, so that nobody has to look at the whole cluster to
// judge one node. The plugins about affinity share it because no plugin may
// import another; it is no plugin and has no hooks of its own.
//
// It counts and refuses to know what a count means for a task. A task counts
// while it is on a node or was promised room there. One that was evicted does not: it
// has made room, and until it has left, State keeps tasks waiting that must be away
// from it. One that does not leave in time counts again.
package neighbours

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Counter keeps the counts of one plugin from session to session. Opened, it
// looks at the nodes that changed since it was last opened; within the session it
// follows the events. It is not safe for concurrent use.
type Counter struct {
	// Holders also counts where the required anti-terms of placed jobs are held,
	// for Against. It costs a look at every placed task.
	Holders bool

	view    cluster.View
	known   uint64 // version of the view that the counts are up to date with
	session uint64
	terms   map[string]*Term // asked for, by key
	held    map[string]*Term // held by placed jobs, by key
	changes uint64
}

// Open brings the counts up to date and follows the session from here on.
func (c *Counter) Open(s *engine.Session) {
	if c.view != s.View {
		c.view, c.known = s.View, 0
		c.terms, c.held = map[string]*Term{}, map[string]*Term{}
	}
	c.session++
	c.changes++
	for key, t := range c.terms {
		if t.asked+1 < c.session { // nobody asked in the last session
			delete(c.terms, key)
		}
	}
	if c.Holders || len(c.terms) > 0 {
		c.view.Recent().Nodes(c.known, c.recount)
	}
	c.known = c.view.Version()
	hear := func(by int) func(*engine.Event) {
		return func(e *engine.Event) {
			// Otherwise a session was opened on another State, or the node is gone and
			// its tasks do not count.
			if c.view == s.View && c.view.Node(e.Node.Name) == e.Node {
				c.add(e.Task, e.Node, by)
			}
		}
	}
	s.Hooks.AddEventHandler(engine.EventHandler{AllocateFunc: hear(+1), DeallocateFunc: hear(-1)})
}

// Changes grows whenever Against may answer differently.
func (c *Counter) Changes() uint64 { return c.changes }

// Term is the count for one of the job's terms. The first who asks for a term
// has it counted over the whole cluster.
func (c *Counter) Term(j *cluster.Job, t *cluster.JobTerm) *Term {
	key := keyOf(j, t)
	term := c.terms[key]
	if term == nil {
		term = newTerm(key, j, t)
		c.terms[key] = term
		for _, n := range c.view.Nodes() {
			for _, task := range n.Tasks {
				if task.Stays() && term.Matches(task.Job) {
					term.add(n, +1)
				}
			}
		}
	}
	term.asked = c.session
	return term
}

// Against are the required anti-terms of placed jobs that match the job: it may
// not go where they are held. They come in the order of their keys.
func (c *Counter) Against(j *cluster.Job) []*Term {
	var out []*Term
	for _, t := range c.held {
		if t.Matches(j) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *Term) int { return strings.Compare(a.key, b.key) })
	return out
}

// recount works the slot's part of every count out again.
func (c *Counter) recount(slot int) {
	for _, t := range c.terms {
		t.forget(slot)
	}
	for key, t := range c.held {
		if t.forget(slot); len(t.cells) == 0 {
			delete(c.held, key)
		}
	}
	n := c.view.At(slot)
	if n == nil {
		return
	}
	for _, t := range n.Tasks {
		if t.Stays() {
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
	if !c.Holders {
		return
	}
	for i := range task.Job.Affinity {
		if t := &task.Job.Affinity[i]; t.Anti && t.Weight == 0 {
			c.hold(task.Job, t, n, by)
		}
	}
}

func (c *Counter) hold(j *cluster.Job, t *cluster.JobTerm, n *cluster.Node, by int) {
	key := keyOf(j, t)
	term := c.held[key]
	if term == nil {
		term = newTerm(key, j, t)
		c.held[key] = term
		c.changes++
	}
	if term.add(n, by); len(term.cells) == 0 {
		delete(c.held, key)
		c.changes++
	}
}
