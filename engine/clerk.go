package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// clerk opens the statements of a session and records what they commit: events, changes,
// and which jobs and tasks must not become victims in this session. The session changes the
// State only through these statements, except that Session.advanceClock sets its clock.
type clerk struct {
	session    *Session
	state      *cluster.State
	view       cluster.View
	now        int64
	hooks      *Hooks
	accounts   *accounts
	fault      *fault
	recording  bool // changes are recorded
	explain    bool
	lastEvents *int // how many events the last session with any had

	open    []*Statement // statements that are neither committed nor discarded
	events  []Record
	changes []cluster.Change
	served  map[*cluster.Job]bool  // jobs for which tasks were evicted in this session
	bound   map[*cluster.Task]bool // tasks of preemptible jobs with a Bind decision of this session; they are no victims in it
	boundAt []int32                // the slots of the nodes of tasks of bound, as far as boundOn does not count them
	boundOn map[int32]int          // by slot of the node: how many tasks of bound are on it; empty if one of them was evicted
	evicted bool                   // a task of bound was evicted, which is no plan of the engine
	decided int                    // the number of committed statements that had decisions
	spare   *spareMemory
	event   Event // the event that handlers are called with
}

// spareMemory is memory that is used again, also by the next session. Nothing in it is part of an
// outcome, except what was taken from the slabs.
type spareMemory struct {
	log       []operation // of a statement that has ended
	decisions []Decision  // of the same statement
	gangs     []*gang     // that are not in use
	statement *Statement  // of the last step
	parts     []ScorePart // of a score that is computed
	claims    slab[cluster.Claim]
	scores    slab[ScorePart]
}

// begin opens an empty statement.
func (c *clerk) begin() *Statement {
	st := &Statement{clerk: c, session: c.session, log: c.spare.log, decisions: c.spare.decisions}
	c.spare.log, c.spare.decisions, c.open = nil, nil, append(c.open, st)
	return st
}

// beginStep is begin for a step of the session, such as the turn of a job. The statement is that of
// the last step, which is over.
func (c *clerk) beginStep() *Statement {
	st := c.spare.statement
	if c.spare.statement = nil; st == nil {
		return c.begin()
	}
	*st = Statement{clerk: c, session: c.session, log: c.spare.log, decisions: c.spare.decisions, stamp: st.stamp}
	c.spare.log, c.spare.decisions, c.open = nil, nil, append(c.open, st)
	return st
}

// endStep takes back the statement of a step, which was committed or discarded.
func (c *clerk) endStep(st *Statement) {
	st.clerk, st.placer = nil, placer{}
	c.spare.statement = st
}

// end ends the transaction, and records its changes if the session records changes.
func (c *clerk) end(tx *cluster.Transaction) {
	if !c.recording {
		tx.End()
	} else if changes := tx.Commit(); len(changes) > 0 {
		c.changes = append(c.changes, cluster.Decided{Changes: changes})
	}
}

// record adds an event to the session. The list is allocated with the length that the last
// session needed.
func (c *clerk) record(r Record) {
	c.expect(1)
	c.events = append(c.events, r)
	*c.lastEvents = len(c.events)
}

// expect makes room for n more events.
func (c *clerk) expect(n int) {
	if c.events == nil {
		c.events = make([]Record, 0, max(n, *c.lastEvents))
	}
	c.events = doubled(c.events, n)
}

// recordEarmark records which room is earmarked for the job now.
func (c *clerk) recordEarmark(j *cluster.Job) {
	r := Record{Kind: Earmarked, Job: j.ID}
	if j.Earmarked != nil {
		for _, room := range j.Earmarked.Rooms {
			room.Resources = slices.Clone(room.Resources)
			r.Rooms = append(r.Rooms, room)
		}
	}
	c.record(r)
}

// announce updates the accounts and calls the event handlers, after the task was allocated or
// deallocated on the node. undo says that the change undoes an earlier one. announce calls
// Unreserve for Deallocated, and Reserve for Allocated if undo is set. Otherwise the callers,
// which are allocate and markOverdue, have called Reserve.
func (c *clerk) announce(kind EventKind, t *cluster.Task, n *cluster.Node, undo bool) {
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
	c.event = Event{Kind: kind, Job: t.Job, Task: t, Node: n, Undo: undo}
	for i := range c.hooks.handlers {
		h := &c.hooks.handlers[i].fn
		if kind == Allocated && h.AllocateFunc != nil {
			h.AllocateFunc(&c.event)
		}
		if kind == Deallocated && h.DeallocateFunc != nil {
			h.DeallocateFunc(&c.event)
		}
	}
}

// noteBound records that this session made a Bind decision for the task, so that the task is
// not evicted in this session.
func (c *clerk) noteBound(t *cluster.Task) {
	if c.bound == nil {
		c.bound = map[*cluster.Task]bool{}
	}
	if c.bound[t] {
		return
	}
	c.bound[t] = true
	if !c.evicted {
		c.boundAt = append(c.boundAt, int32(t.Node.Slot()))
	}
}

// noteEvicted takes note that a statement evicts the task. If the task was bound in this
// session, the tasks of bound are not counted by node any more.
func (c *clerk) noteEvicted(t *cluster.Task) {
	if c.bound[t] {
		c.boundAt, c.boundOn, c.evicted = nil, nil, true
	}
}

// allBound reports whether all of the given number of tasks on the node that might be victims
// were bound in this session, so that none of them is one. If it returns false, that is not
// known.
func (c *clerk) allBound(slot, tasks int) bool {
	if len(c.boundAt) > 0 && c.boundOn == nil { // they are counted only here, because most sessions seek no victims
		c.boundOn = map[int32]int{}
	}
	for _, at := range c.boundAt {
		c.boundOn[at]++
	}
	c.boundAt = c.boundAt[:0]
	return tasks > 0 && c.boundOn[int32(slot)] >= tasks
}
