package cluster

import "fmt"

// Transaction is how a session changes a State: what it does is visible at once,
// can be taken back, and becomes final with Commit, which returns it as changes.
// It is a thin layer over the journal. Transactions end in the reverse of the
// order in which they begin.
type Transaction struct {
	state *State
	mark  Mark
}

// Begin opens a transaction.
func (s *State) Begin() Transaction { return Transaction{s, s.Mark()} }

// Position is where the transaction is now, for UndoTo.
func (x *Transaction) Position() int { return len(x.state.journal.records) }

// UndoTo takes back everything since the position.
func (x *Transaction) UndoTo(position int) { x.state.journal.undoTo(max(position, x.mark.at), x.state) }

// Discard takes everything back and ends the transaction.
func (x *Transaction) Discard() {
	x.state.Undo(x.mark)
	x.End()
}

// End ends the transaction; what it did stays.
func (x *Transaction) End() {
	if len(x.state.journal.records) > x.mark.at {
		x.state.journal.commits++
	}
	x.state.standings.later = nil // decisions take room that is free: the others keep theirs
	x.state.Release(x.mark)
}

// Commit ends the transaction and returns its net changes: undone and then applied
// as Decided, they give the same State.
func (x *Transaction) Commit() []Change {
	out := x.state.journal.net(x.mark.at)
	x.End()
	return out
}

// Place books the claims of a pending task on the node: it is then Assumed, or
// Nominated where part of the room is still releasing, or a task that it must be
// away from is still leaving. The caller has checked
// that it fits; Place checks again and changes nothing if it does not, because
// no caller's mistake may ever book a device twice.
func (x *Transaction) Place(t *Task, n *Node, claims []Claim, now int64) error {
	s := x.state
	if t.Status != Pending {
		return fmt.Errorf("task %s is %s, not pending", t.ID, t.Status)
	}
	if err := s.fleet.fits(t, n, claims); err != nil {
		return fmt.Errorf("task %s does not fit node %s: %w", t.ID, n.Name, err)
	}
	to := standing{node: n, claims: claims, held: t.Shape, attempt: t.Attempt}
	if t.shadows != nil || !s.roster.present(t, n, claims) { // what a landing stands for is still elsewhere
		to.status, to.promised = Nominated, now
	} else {
		to.status, to.started = Assumed, now
		to.attempt++
	}
	s.standings.stand(t, to)
	return nil
}

// Evict turns the room of a task that runs into releasing room: it can be
// reserved, and is not free yet.
func (x *Transaction) Evict(t *Task, forJob string, now int64) error {
	return x.state.standings.evict(t, forJob, now)
}

// Bind turns a nominated task into an assumed one if its reserved room is free by
// now, and reports whether it did.
func (x *Transaction) Bind(t *Task, now int64) bool {
	if t.Status != Nominated || !t.Node.Keeps(t) || !x.state.roster.present(t, t.Node, t.Claims) {
		return false
	}
	to := t.standing()
	to.status, to.started, to.promised, to.attempt = Assumed, now, 0, t.Attempt+1
	x.state.standings.stand(t, to)
	return true
}

// Hold turns a task that was just placed into a nominated one: a gang of which one
// member waits for its room waits as a whole.
func (x *Transaction) Hold(t *Task, now int64) {
	to := t.standing()
	to.status, to.started, to.promised, to.attempt = Nominated, 0, now, t.Attempt-1
	x.state.standings.stand(t, to)
}

// Withdraw releases the room reserved for a nominated task, or by a landing.
func (x *Transaction) Withdraw(t *Task) error {
	if t.Status != Nominated {
		return fmt.Errorf("task %s is %s, not nominated", t.ID, t.Status)
	}
	x.state.standings.clear(t)
	return nil
}

// Land turns a placed shadow into the landing of the task that it stands for.
func (x *Transaction) Land(shadow *Task) { x.state.standings.landShadow(shadow) }

// Overdue counts the room of a releasing task as held.
func (x *Transaction) Overdue(t *Task) { x.state.standings.setOverdue(t) }

// Retire takes the job out of its set for good: it is not pending any more, and
// the caller evicts what runs of it.
func (x *Transaction) Retire(j *Job) { x.state.workload.retire(j) }

// Keep has the job's set stay with the group that the job is on, whatever
// becomes of its nodes: a group is chosen once.
func (x *Transaction) Keep(j *Job) { x.state.sets.keep(j) }

// SetTorn notes since when the job runs below its minimum; 0: it does not.
func (x *Transaction) SetTorn(j *Job, since int64) { x.state.workload.setTorn(j, since) }

// Displace notes that tasks of the victims were evicted for the job: none is
// evicted for that job again.
func (x *Transaction) Displace(j *Job, victims ...string) { x.state.workload.displace(j, victims) }

// Park notes when the job is tried again; nil: it was not refused.
func (x *Transaction) Park(j *Job, p *Parked) { x.state.workload.park(j, p) }
