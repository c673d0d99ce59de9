package cluster

import "fmt"

// Transaction makes the decisions of a session in a State. Each change is visible at once
// and can be undone until the transaction ends. Commit makes the changes final and returns
// them. Transactions may be nested: they must end in the reverse order of their beginning.
type Transaction struct {
	state *State
	mark  Mark
}

// Begin opens a transaction.
func (s *State) Begin() Transaction { return Transaction{s, s.Mark()} }

// Position returns a checkpoint to which UndoTo can return.
func (x *Transaction) Position() int { return len(x.state.journal.records) }

// UndoTo undoes all changes that were made after Position returned the position.
func (x *Transaction) UndoTo(position int) { x.state.journal.undoTo(max(position, x.mark.at), x.state) }

// Discard undoes all changes of the transaction and ends it.
func (x *Transaction) Discard() {
	x.state.Undo(x.mark)
	x.End()
}

// End ends the transaction. Its changes stay.
func (x *Transaction) End() {
	if len(x.state.journal.records) > x.mark.at {
		x.state.journal.commits++
	}
	x.state.taskStates.recounts = nil // decisions use only free devices, so that no recount is needed
	x.state.Release(x.mark)
}

// Commit ends the transaction and returns its net changes. Applying them as one Decided
// to the State from before the transaction gives the same State.
func (x *Transaction) Commit() []Change {
	out := x.state.journal.net(x.mark.at)
	x.End()
	return out
}

// Place gives a pending task room on the node, with these claims. The task is then
// Assumed. It is Nominated instead if part of the room is still being released, if the
// anti-affinity of its job, or of the job of a releasing task, excludes a task that is still
// there, or if it is a shadow, which is always Nominated. The caller has
// checked that the task fits. Place checks it again, so that a mistake of the caller
// cannot book a device twice, and returns an error without a change if it does not fit.
func (x *Transaction) Place(t *Task, n *Node, claims []Claim, now int64) error {
	s := x.state
	if t.Status != Pending {
		return fmt.Errorf("task %s is %s, not pending", t.ID, t.Status)
	}
	if err := s.fleet.fits(t, n, claims); err != nil {
		return fmt.Errorf("task %s does not fit node %s: %w", t.ID, n.Name, err)
	}
	to := taskState{node: n, claims: claims, held: t.Shape, attempt: t.Attempt}
	if t.ShadowOf() != nil || !s.roster.canStartNow(t, n, claims) { // a task that moves is still on its old node
		to.status, to.reservedAt = Nominated, now
	} else {
		to.status, to.started = Assumed, now
		to.attempt++
	}
	s.taskStates.set(t, to)
	return nil
}

// Evict evicts a running task for the job forJob, which may be "". The task is
// then Releasing: its room can be reserved, but is not free yet.
func (x *Transaction) Evict(t *Task, forJob string, now int64) error {
	return x.state.taskStates.evict(t, forJob, now)
}

// Bind changes a Nominated task to Assumed if its reserved room is free by now, and
// reports whether it did.
func (x *Transaction) Bind(t *Task, now int64) bool {
	if t.Status != Nominated || !t.Node.Keeps(t) || !x.state.roster.canStartNow(t, t.Node, t.Claims) {
		return false
	}
	to := t.state()
	to.status, to.started, to.reservedAt, to.attempt = Assumed, now, 0, t.Attempt+1
	x.state.taskStates.set(t, to)
	return true
}

// Nominate changes a task that was just placed from Assumed to Nominated. If one task of a
// gang has to wait for its room, all tasks of the gang wait.
func (x *Transaction) Nominate(t *Task, now int64) {
	to := t.state()
	to.status, to.started, to.reservedAt, to.attempt = Nominated, 0, now, t.Attempt-1
	x.state.taskStates.set(t, to)
}

// Withdraw releases the room that is reserved for the Nominated task t. To release the room
// that is reserved for a task that moves, pass its shadow, which Task.Landing returns. The
// task that moves is itself Releasing. Withdraw returns an error if t is not Nominated.
func (x *Transaction) Withdraw(t *Task) error {
	if t.Status != Nominated {
		return fmt.Errorf("task %s is %s, not nominated", t.ID, t.Status)
	}
	x.state.taskStates.clear(t)
	return nil
}

// AddLanding makes a placed shadow the landing of its task: the reservation on the node that the
// task moves to. See Job.Shadow.
func (x *Transaction) AddLanding(shadow *Task) { x.state.taskStates.addLanding(shadow) }

// Overdue marks an evicted task that did not leave in time. Its room counts as held from
// then on.
func (x *Transaction) Overdue(t *Task) { x.state.taskStates.setOverdue(t) }

// Retire removes the job from its Set permanently. The job is not pending any more. The
// caller evicts its running tasks.
func (x *Transaction) Retire(j *Job) { x.state.workload.retire(j) }

// KeepGroup chooses the node group that the job is on for its Set, unless a group is chosen
// already. The choice stays, even if the nodes of the job change.
func (x *Transaction) KeepGroup(j *Job) { x.state.sets.keepGroup(j) }

// SetBelowMinimum records since when the job runs below its minimum, in nanoseconds; 0
// means that it does not.
func (x *Transaction) SetBelowMinimum(j *Job, since int64) {
	x.state.workload.setBelowMinimum(j, since)
}

// Displace records that tasks of the victims, which are IDs of jobs, were evicted for the
// job. No victim is evicted for the same job again.
func (x *Transaction) Displace(j *Job, victims ...string) { x.state.workload.displace(j, victims) }

// Earmark earmarks the room for the job, instead of what was earmarked for it before; nil
// earmarks nothing. It returns an error and changes nothing if a node is not known, or if part of
// it is earmarked for another job.
func (x *Transaction) Earmark(j *Job, e *Earmarked) error {
	if e != nil {
		if err := x.state.workload.checkEarmark(j, e); err != nil {
			return err
		}
	}
	x.state.workload.earmark(j, e.clone())
	return nil
}

// Park records when the refused job is tried again; nil means that it was not refused.
func (x *Transaction) Park(j *Job, p *Parked) { x.state.workload.park(j, p) }
