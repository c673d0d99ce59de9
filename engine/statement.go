package engine

import (
	"errors"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Statement is the changes of one attempt, which are committed together or undone. Hooks see
// its changes at once. Rollback undoes changes, the last first, and restores everything
// except versions, which only grow. Commit makes the changes final, and Discard undoes all of
// them.
type Statement struct {
	clerk   *clerk
	session *Session
	tx      cluster.Transaction
	begun   bool // the transaction is open
	log     []operation
	// decisions are those that place or bind tasks, in the order of the log. Decisions to
	// evict are made by Commit.
	decisions []Decision
	aim       aim    // what Place tries to place
	placer    placer // the placer of Place, kept here because a separate one would be allocated in every call
	// planSearch is added to evictions. It describes how their plan was found.
	planSearch *PlanSearch
	stamp      uint64 // grows with every change and every undo
}

// operation is one change in the log of a statement.
type operation struct {
	kind operationKind
	at   int // the position of the journal before the change
	task *cluster.Task
	node *cluster.Node // of a withdrawn reservation: its node
	job  *cluster.Job  // of a retirement or an earmark: the job; of an eviction: the job with the ID forJob, or nil if it is not known
	// why, forJob, purpose and planSearch are about an eviction. Its Decision is made by Commit,
	// since most evictions are rolled back.
	why        Reason
	forJob     string
	purpose    Purpose
	planSearch *PlanSearch
	worth      *Score // of a retired job: its score
	sameRoom   bool   // of an earmark: the job had the same room earmarked before
	// decision is the index in Statement.decisions, counted from 1, of the decision that
	// places or binds the task; 0: there is none.
	decision int
}

// logOperation appends an operation to the log.
func (st *Statement) logOperation(op operation) {
	st.log = append(doubled(st.log, 1), op)
	st.stamp++
}

// logDecision appends an operation that places or binds a task, with its decision.
func (st *Statement) logDecision(kind operationKind, at int, t *cluster.Task, d *Decision) {
	if g := t.Node.Group(); g != nil {
		d.Group = g.Key
	}
	st.decisions = append(st.decisions, *d)
	st.logOperation(operation{kind: kind, at: at, task: t, decision: len(st.decisions)})
}

type operationKind uint8

const (
	placed operationKind = iota
	evicted
	bound
	withdrawn
	retired
	earmarked   // event handlers are not called for an earmark
	unannounced // a landing or an overdue mark: event handlers are not called when it is undone
)

// release ends the statement and gives the memory of its log to the next statement.
func (st *Statement) release() {
	st.stamp++
	st.clerk.open = slices.DeleteFunc(st.clerk.open, func(o *Statement) bool { return o == st })
	st.truncate(0)
	st.clerk.spare.log, st.clerk.spare.decisions = st.log, st.decisions
	st.log, st.decisions = nil, nil
}

// truncate removes all but the first operations from the log, and their decisions.
func (st *Statement) truncate(to int) {
	for i := to; i < len(st.log); i++ {
		if at := st.log[i].decision; at > 0 {
			clear(st.decisions[at-1:])
			st.decisions = st.decisions[:at-1]
			break
		}
	}
	clear(st.log[to:])
	st.log = st.log[:to]
}

// position returns the position of the journal. The first call opens the transaction.
func (st *Statement) position() int {
	if !st.begun {
		st.tx, st.begun = st.clerk.state.Begin(), true
	}
	return st.tx.Position()
}

// end commits the transaction, and records its changes if the session records changes.
func (st *Statement) end() {
	if st.begun {
		st.clerk.end(&st.tx)
	}
	st.begun = false
}

// Allocate places the task on the node. The task is then Assumed, or Nominated if it cannot
// start yet, such as because other tasks are still releasing part of its room; see
// cluster.Transaction.Place. Allocate returns an error and changes nothing if the node lacks
// the room or a Reserver rejects it.
func (st *Statement) Allocate(t *cluster.Task, n *cluster.Node, claims []cluster.Claim) error {
	return st.allocate(t, Decision{Node: n.Name, Claims: claims}, n)
}

func (st *Statement) allocate(t *cluster.Task, d Decision, n *cluster.Node) error {
	if st.session.closed {
		return errClosed
	}
	at := st.position()
	if err := st.tx.Place(t, n, d.Claims, st.clerk.now); err != nil {
		return err
	}
	if len(st.clerk.hooks.reservers) > 0 {
		if err := st.clerk.hooks.reservers.reserve(t, n, st.clerk.fault); err != nil {
			st.tx.UndoTo(at)
			return err
		}
		if err := st.takeDevices(t, &d, n, at); err != nil {
			return err
		}
	}
	d.Action, d.Task = Bind, t.Ref()
	if t.Status == cluster.Nominated {
		d.Action = Nominate
	}
	st.logDecision(placed, at, t, &d)
	st.clerk.announce(Allocated, t, n, false)
	return nil
}

// takeDevices gives the task, which was placed at the position of the journal, the devices that a
// Reserver chose, if it chose any and they are free. Otherwise the task keeps its devices.
func (st *Statement) takeDevices(t *cluster.Task, d *Decision, n *cluster.Node, at int) error {
	chosen := st.clerk.hooks.reservers.devices(t, n)
	if len(chosen) == 0 || slices.Equal(chosen, d.Claims) {
		return nil
	}
	st.tx.UndoTo(at)
	if st.tx.Place(t, n, chosen, st.clerk.now) == nil {
		d.Claims = chosen
		return nil
	}
	return st.tx.Place(t, n, d.Claims, st.clerk.now) // as before
}

var errClosed = errors.New("the session is closed; no more decisions can be made in it")

// Evict evicts a running task, which is Bound or Assumed (Task.Runs), to make room for the job
// with the ID. Tasks that are placed on its room from now on are nominated, until the evicted
// task has released the room.
func (st *Statement) Evict(t *cluster.Task, forJob string, why Reason) error {
	if st.session.closed {
		return errClosed
	}
	at, n := st.position(), t.Node
	if err := st.tx.Evict(t, forJob, st.clerk.now); err != nil {
		return err
	}
	st.clerk.noteEvicted(t)
	st.logOperation(operation{kind: evicted, at: at, task: t, why: why, forJob: forJob, planSearch: st.planSearch})
	st.clerk.announce(Deallocated, t, n, false)
	return nil
}

// setPlanSearch adds how their plan was found to the evictions since the checkpoint.
func (st *Statement) setPlanSearch(checkpoint int, search *PlanSearch) {
	for i := checkpoint; i < len(st.log); i++ {
		if op := &st.log[i]; op.kind == evicted {
			op.planSearch = search
		}
	}
}

// evictFor evicts all tasks of the victim for the job.
func (st *Statement) evictFor(j *cluster.Job, v *Victim, why Reason) error {
	for _, t := range v.Tasks {
		if err := st.Evict(t, j.ID, why); err != nil {
			return err
		}
		op := &st.log[len(st.log)-1]
		if op.purpose = v.Purpose; st.clerk.view.JobAt(j.Slot()) == j {
			op.job = j
		}
	}
	return nil
}

// Bind changes a Nominated task to Assumed if its reserved room is free now. It reports
// whether it did.
func (st *Statement) Bind(t *cluster.Task) bool {
	if st.session.closed {
		return false
	}
	at := st.position()
	if !st.tx.Bind(t, st.clerk.now) {
		return false
	}
	st.logDecision(bound, at, t, &Decision{Action: Bind, Task: t.Ref(), Node: t.Node.Name, Claims: t.Claims, Alternative: t.Job.Alternatives[max(0, t.Job.Chosen)].Name})
	return true
}

// withdraw withdraws the reservations of the job's nominated tasks. If landings is set, it
// also withdraws the reservations for tasks of the job that move.
func (st *Statement) withdraw(j *cluster.Job, landings bool) {
	for _, t := range j.Tasks() {
		holder := t
		if landings && t.Landing() != nil {
			holder = t.Landing()
		}
		if holder.Status == cluster.Nominated {
			at, n := st.position(), holder.Node
			if err := st.tx.Withdraw(holder); err != nil {
				st.clerk.fault.fail("engine", "withdrawing: %v", err)
				return
			}
			st.logOperation(operation{kind: withdrawn, at: at, task: holder, node: n})
			st.clerk.announce(Deallocated, holder, n, false)
		}
	}
}

// markOverdue marks an evicted task that still holds its room as overdue: the room counts as
// in use again.
func (st *Statement) markOverdue(t *cluster.Task) {
	st.logOperation(operation{kind: unannounced, at: st.position()})
	st.tx.Overdue(t)
	st.clerk.hooks.reservers.again(t, t.Node)
	st.clerk.announce(Allocated, t, t.Node, false)
}

// reserveMove turns the placed tasks of a shadow job into reservations for the tasks that move: each
// task of the shadow is a copy of one of these.
func (st *Statement) reserveMove(shadow *cluster.Job) {
	for _, t := range shadow.Tasks() {
		if t.ShadowOf() != nil {
			st.logOperation(operation{kind: unannounced, at: st.position()})
			st.tx.AddLanding(t)
		}
	}
}

// hold turns the bindings of the job since the checkpoint into nominations. If one task of a
// gang must wait for its room, all tasks of the gang wait.
func (st *Statement) hold(j *cluster.Job, checkpoint int) {
	for i := checkpoint; i < len(st.log); i++ {
		if op := &st.log[i]; op.kind == placed && op.task.Job == j && st.decisions[op.decision-1].Action == Bind {
			st.tx.Nominate(op.task, st.clerk.now)
			st.decisions[op.decision-1].Action = Nominate
			st.stamp++
		}
	}
}

// Checkpoint returns a mark to which Rollback can return.
func (st *Statement) Checkpoint() int { return len(st.log) }

// Rollback undoes all changes since the checkpoint, the last first. For each task that was
// placed, evicted or lost its reservation, event handlers and Reservers are called with the
// opposite of the change. They are not called when a binding, a retirement, a landing or an
// overdue mark is undone.
func (st *Statement) Rollback(checkpoint int) {
	for i := len(st.log) - 1; i >= checkpoint; i-- {
		op := st.log[i]
		n := op.node
		if n == nil && op.task != nil {
			n = op.task.Node
		}
		st.tx.UndoTo(op.at)
		st.truncate(i) // before hooks are called: if one panics, the operation is not undone twice
		st.stamp++
		switch op.kind {
		case placed:
			st.clerk.announce(Deallocated, op.task, n, true)
		case evicted, withdrawn:
			st.clerk.announce(Allocated, op.task, n, true)
		}
	}
}

// move is a task that was placed, with its node and devices.
type move struct {
	task   *cluster.Task
	node   *cluster.Node
	claims []cluster.Claim
}

// placedSince returns the tasks that were placed since the checkpoint.
func (st *Statement) placedSince(checkpoint int) []move {
	var out []move
	for i := checkpoint; i < len(st.log); i++ {
		if op := &st.log[i]; op.kind == placed {
			out = append(out, move{op.task, op.task.Node, op.task.Claims})
		}
	}
	return out
}

// recordDisplaced writes to the State which jobs were evicted for which other jobs: no job is
// evicted twice for the same job.
func (st *Statement) recordDisplaced() {
	type served struct {
		id      string
		job     *cluster.Job // nil if there is no such job
		victims []string
	}
	var all []served
	for i := range st.log {
		op := &st.log[i]
		if op.kind != evicted {
			continue
		}
		at := len(all) - 1
		for at >= 0 && all[at].id != op.forJob { // most statements evict for one job
			at--
		}
		if at < 0 {
			at = len(all)
			s := served{id: op.forJob, job: op.job}
			if s.job == nil {
				s.job = st.clerk.view.Job(op.forJob)
			}
			all = append(all, s)
		}
		if s := &all[at]; s.job != nil {
			s.victims = append(s.victims, op.task.Job.ID)
		}
	}
	for _, s := range all {
		if s.job == nil {
			continue
		}
		if st.clerk.served == nil {
			st.clerk.served = map[*cluster.Job]bool{}
		}
		st.clerk.served[s.job] = true
		st.tx.Displace(s.job, s.victims...)
	}
}

// setLanding sets the node to which an evicted task moves in the decision that evicts it.
func (st *Statement) setLanding(decisions []Decision, landing *Decision) {
	for i := range decisions {
		if d := &decisions[i]; d.Action == EvictTask && d.Task == landing.Task {
			d.Landing = landing.Node
		}
	}
}

// decideEviction sets the empty decision to that for an eviction of the log.
func (st *Statement) decideEviction(d *Decision, op *operation) {
	t := op.task
	d.Action, d.Task, d.Node, d.Claims = EvictTask, t.Ref(), t.Node.Name, t.Claims
	d.Reason, d.For, d.Purpose, d.PlanSearch = op.why, op.forJob, op.purpose, op.planSearch
	if op.worth != nil {
		d.Score = *op.worth
	}
}

// Discard undoes all changes and ends the statement.
func (st *Statement) Discard() {
	st.Rollback(0)
	if st.begun {
		st.tx.Discard()
	}
	st.begun = false
	st.release()
}

// Commit makes all changes final and ends the statement. It returns the decisions in the
// order in which they are to be carried out, evictions first. If the session is closed, it
// undoes them instead.
func (st *Statement) Commit() []Decision {
	if st.session.closed {
		st.Discard()
		return nil
	}
	out := make([]Decision, 0, len(st.log))
	evicts := false
	var last *cluster.Job // the job that was compared with its minimum last; a gang is compared once and not for each of its tasks
	for _, want := range [...]operationKind{evicted, placed, bound} {
		for i := range st.log {
			op := &st.log[i]
			if op.kind != want {
				continue
			}
			out = out[:len(out)+1]
			d := &out[len(out)-1]
			if op.kind == evicted {
				st.decideEviction(d, op)
			} else {
				*d = st.decisions[op.decision-1]
			}
			if len(d.Claims) > 0 {
				d.Claims = st.clerk.spare.claims.keep(d.Claims) // the State keeps the original slice
			}
			if op.kind == placed {
				st.tx.KeepGroup(op.task.Job)
			}
			if d.Action == Bind && op.task.Job.Preemptible {
				st.clerk.noteBound(op.task)
			}
			if j := op.task.Job; op.kind != evicted && j != last {
				if last = j; j.HasMinimum() {
					st.tx.SetBelowMinimum(j, 0)
				}
			}
			if op.task.ShadowOf() != nil {
				st.setLanding(out, d)
			}
			evicts = evicts || op.kind == evicted
		}
	}
	if evicts {
		st.recordDisplaced()
	}
	for i := range st.log {
		switch op := &st.log[i]; op.kind {
		case withdrawn:
			t := op.task.Ref()
			st.clerk.record(Record{Kind: Withdrawn, Job: t.Job, Task: t, Node: op.node.Name})
		case earmarked:
			if !op.sameRoom {
				st.clerk.recordEarmark(op.job)
			}
		case retired:
			st.clerk.record(Record{Kind: Retired, Job: op.job.ID, Score: op.worth})
		}
	}
	if len(out) > 0 {
		st.clerk.expect(len(out))
	}
	for i := range out {
		d := &out[i]
		st.clerk.record(Record{Kind: d.Action.event(), Job: d.Task.Job, Task: d.Task, Node: d.Node, Decision: d})
	}
	if len(out) > 0 {
		st.clerk.decided++
	}
	st.release()
	st.end()
	return out
}

// setGroupScores adds the score of the chosen node group, which is the first of the choices,
// to the decisions since the checkpoint. If the session explains, it adds all choices.
func (st *Statement) setGroupScores(checkpoint int, choices []groupChoice) {
	var groups []GroupCandidate
	if st.clerk.explain {
		for _, c := range choices {
			groups = append(groups, GroupCandidate{c.group.Key, c.form.Name, c.score})
		}
	}
	for i := checkpoint; i < len(st.log); i++ {
		if op := &st.log[i]; op.kind == placed {
			d := &st.decisions[op.decision-1]
			d.GroupScore, d.Groups = choices[0].score, groups
		}
	}
}
