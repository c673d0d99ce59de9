package engine

import (
	"github.com/berth-project/berth/cluster"
)

// clerk opens the statements of a session and keeps what they commit: events, changes,
// and which jobs are not to be victims any more. It alone can change the State.
type clerk struct {
	state      *cluster.State
	view       cluster.View
	now        int64
	hooks      *Hooks
	accounts   *accounts
	fault      *fault
	recording  bool // changes are listed
	explain    bool
	lastEvents *int // how many events the last session had that had any

	open    []*Statement // those that have not ended
	closed  bool         // the session is over
	events  []Record
	changes []cluster.Change
	served  map[*cluster.Job]bool  // others were evicted for them in this session
	bound   map[*cluster.Task]bool // in this session, of preemptible jobs: they are no victims in it
	decided int                    // counts the statements that made decisions final
	// spareLog is the log of a statement that has ended, for the next one.
	spareLog       []operation
	spareDecisions []Decision
}

// begin opens an empty statement.
func (c *clerk) begin() *Statement {
	st := &Statement{clerk: c, log: c.spareLog, decisions: c.spareDecisions}
	c.spareLog, c.spareDecisions, c.open = nil, nil, append(c.open, st)
	return st
}

// record adds to the events of the session. A session is likely to have as many as
// the one before it.
func (c *clerk) record(r Record) {
	if c.events == nil {
		c.events = make([]Record, 0, max(4, *c.lastEvents))
	}
	c.events = append(c.events, r)
	*c.lastEvents = len(c.events)
}

func (c *clerk) tell(kind EventKind, t *cluster.Task, n *cluster.Node, undo bool) {
	if kind == Allocated {
		c.accounts.adjustUnplaced(t, -1)
	} else {
		c.accounts.adjustUnplaced(t, +1)
	}
	switch {
	case len(c.hooks.reservers) == 0:
	case kind == Deallocated:
		c.hooks.reservers.unreserve(t, n)
	case undo:
		c.hooks.reservers.again(t, n)
	}
	if len(c.hooks.handlers) == 0 {
		return
	}
	e := Event{Kind: kind, Job: t.Job, Task: t, Node: n, Undo: undo}
	for i := range c.hooks.handlers {
		h := &c.hooks.handlers[i].fn
		if kind == Allocated && h.AllocateFunc != nil {
			h.AllocateFunc(&e)
		}
		if kind == Deallocated && h.DeallocateFunc != nil {
			h.DeallocateFunc(&e)
		}
	}
}

// settleIn notes that the task is bound in this session.
func (c *clerk) settleIn(t *cluster.Task) {
	if c.bound == nil {
		c.bound = map[*cluster.Task]bool{}
	}
	c.bound[t] = true
}
