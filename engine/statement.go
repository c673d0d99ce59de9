package engine

import (
	"errors"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Statement is a thin layer over the journal of State. Its changes are visible to
// hooks at once; Rollback takes them back, last first, and restores everything
// but versions, which only grow. Commit makes the rest final, all or nothing.
type Statement struct {
	clerk *clerk
	tx    cluster.Transaction
	begun bool // the transaction is open: something was changed
	log   []operation
	// decisions are those of the tasks that are placed or bound, in the order of the log.
	decisions []Decision
	aim       aim // what jobs are placed for in it
	// weighing says how the plan was found that evictions belong to.
	weighing *Weighing
	stamp    uint64 // grows with every change and every undo
}

type operation struct {
	kind operationKind
	at   int // position of the journal before it
	task *cluster.Task
	node *cluster.Node // that it is withdrawn from
	job  *cluster.Job  // that is retired
	// What an eviction is for: its decision is made when it is final, since most are
	// only tried.
	why      Reason
	forJob   string
	purpose  Purpose
	weighing *Weighing
	worth    *Score // of a job that is retired: what it was worth to keep
	// decision is the place in the statement's decisions of that of a task that is
	// placed or bound, counted from 1; 0: there is none.
	decision int
}

// logOperation logs an operation.
func (st *Statement) logOperation(op operation) {
	st.log = append(st.log, op)
	st.stamp++
}

// logDecision logs an operation that is a decision.
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
	unannounced // handlers hear nothing of it
)

// release gives the memory of the log to the next statement.
func (st *Statement) release() {
	st.stamp++
	st.clerk.open = slices.DeleteFunc(st.clerk.open, func(o *Statement) bool { return o == st })
	st.truncate(0)
	st.clerk.spareLog, st.clerk.spareDecisions = st.log, st.decisions
	st.log, st.decisions = nil, nil
}

// truncate shortens the log.
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

// position is where the transaction is now. The first call opens it.
func (st *Statement) position() int {
	if !st.begun {
		st.tx, st.begun = st.clerk.state.Begin(), true
	}
	return st.tx.Position()
}

// end makes the transaction final.
func (st *Statement) end() {
	switch {
	case !st.begun:
	case !st.clerk.recording:
		st.tx.End()
	default:
		if changes := st.tx.Commit(); len(changes) > 0 {
			st.clerk.changes = append(st.clerk.changes, cluster.Decided{Changes: changes})
		}
	}
	st.begun = false
}

// Allocate places the task: it is bound, or nominated where part of its room is
// still releasing. It fails, changing nothing, if the room is not there or a plugin
// cannot reserve what it needs.
func (st *Statement) Allocate(t *cluster.Task, n *cluster.Node, claims []cluster.Claim) error {
	return st.allocate(t, Decision{Node: n.Name, Claims: claims}, n)
}

func (st *Statement) allocate(t *cluster.Task, d Decision, n *cluster.Node) error {
	if st.clerk.closed {
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
	}
	d.Action, d.Task = Bind, t.Ref()
	if t.Status == cluster.Nominated {
		d.Action = Nominate
	}
	st.logDecision(placed, at, t, &d)
	st.clerk.tell(Allocated, t, n, false)
	return nil
}

var errClosed = errors.New("the session is closed: nothing can be decided in it any more")

// Evict evicts a bound task to make room for the job; its room is releasing from now on.
func (st *Statement) Evict(t *cluster.Task, forJob string, why Reason) error {
	if st.clerk.closed {
		return errClosed
	}
	at, n := st.position(), t.Node
	if err := st.tx.Evict(t, forJob, st.clerk.now); err != nil {
		return err
	}
	st.logOperation(operation{kind: evicted, at: at, task: t, why: why, forJob: forJob, weighing: st.weighing})
	st.clerk.tell(Deallocated, t, n, false)
	return nil
}

// evictFor evicts the victim for the job.
func (st *Statement) evictFor(j *cluster.Job, v *Victim, why Reason) error {
	for _, t := range v.Tasks {
		if err := st.Evict(t, j.ID, why); err != nil {
			return err
		}
		st.log[len(st.log)-1].purpose = v.Purpose
	}
	return nil
}

// Bind turns a nomination into a binding if the reserved room is free by now.
func (st *Statement) Bind(t *cluster.Task) bool {
	if st.clerk.closed {
		return false
	}
	at := st.position()
	if !st.tx.Bind(t, st.clerk.now) {
		return false
	}
	st.logDecision(bound, at, t, &Decision{Action: Bind, Task: t.Ref(), Node: t.Node.Name, Claims: t.Claims})
	return true
}

// withdraw releases the job's reservations and, if asked to, its landings.
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
			st.clerk.tell(Deallocated, holder, n, false)
		}
	}
}

// markOverdue counts the room of an evicted task as held: it does not leave.
func (st *Statement) markOverdue(t *cluster.Task) {
	st.logOperation(operation{kind: unannounced, at: st.position()})
	st.tx.Overdue(t)
	st.clerk.hooks.reservers.again(t, t.Node)
	st.clerk.tell(Allocated, t, t.Node, false)
}

// land reserves what the placed shadow job holds for the tasks it stands for.
func (st *Statement) land(shadow *cluster.Job) {
	for _, t := range shadow.Tasks() {
		if t.Shadows() != nil {
			st.logOperation(operation{kind: unannounced, at: st.position()})
			st.tx.Land(t)
		}
	}
}

// hold turns the job's bindings since the checkpoint into nominations: a gang
// whose last member has to wait for its room waits as a whole.
func (st *Statement) hold(j *cluster.Job, checkpoint int) {
	for i := checkpoint; i < len(st.log); i++ {
		if op := &st.log[i]; op.kind == placed && op.task.Job == j && st.decisions[op.decision-1].Action == Bind {
			st.tx.Hold(op.task, st.clerk.now)
			st.decisions[op.decision-1].Action = Nominate
			st.stamp++
		}
	}
}

// Checkpoint marks the present for Rollback.
func (st *Statement) Checkpoint() int { return len(st.log) }

// Rollback takes back everything since the checkpoint.
func (st *Statement) Rollback(checkpoint int) {
	for i := len(st.log) - 1; i >= checkpoint; i-- {
		op := st.log[i]
		n := op.node
		if n == nil && op.task != nil {
			n = op.task.Node
		}
		st.tx.UndoTo(op.at)
		st.truncate(i) // before hooks hear of it: one that panics has it taken back once
		st.stamp++
		switch op.kind {
		case placed:
			st.clerk.tell(Deallocated, op.task, n, true)
		case evicted, withdrawn:
			st.clerk.tell(Allocated, op.task, n, true)
		}
	}
}

// move is where a task was placed.
type move struct {
	task   *cluster.Task
	node   *cluster.Node
	claims []cluster.Claim
}

// placedSince lists the tasks that were placed since the checkpoint.
func (st *Statement) placedSince(checkpoint int) []move {
	var out []move
	for i := checkpoint; i < len(st.log); i++ {
		if op := &st.log[i]; op.kind == placed {
			out = append(out, move{op.task, op.task.Node, op.task.Claims})
		}
	}
	return out
}

// recordDisplaced remembers which jobs were evicted for which others.
func (st *Statement) recordDisplaced() {
	victims := map[string][]string{}
	var jobs []string
	for i := range st.log {
		if op := &st.log[i]; op.kind == evicted && st.clerk.view.Job(op.forJob) != nil {
			if victims[op.forJob] == nil {
				jobs = append(jobs, op.forJob)
			}
			victims[op.forJob] = append(victims[op.forJob], op.task.Job.ID)
		}
	}
	for _, id := range jobs {
		job := st.clerk.view.Job(id)
		if st.clerk.served == nil {
			st.clerk.served = map[*cluster.Job]bool{}
		}
		st.clerk.served[job] = true
		st.tx.Displace(job, victims[id]...)
	}
}

// setLanding tells the eviction of a task where it lands.
func (st *Statement) setLanding(decisions []Decision, landing *Decision) {
	for i := range decisions {
		if d := &decisions[i]; d.Action == EvictIt && d.Task == landing.Task {
			d.Landing = landing.Node
		}
	}
}

// evictionDecision is the decision to evict.
func (st *Statement) evictionDecision(op *operation) Decision {
	t := op.task
	d := Decision{Action: EvictIt, Task: t.Ref(), Node: t.Node.Name, Claims: t.Claims, Reason: op.why, For: op.forJob, Purpose: op.purpose, Weighing: op.weighing}
	if op.worth != nil {
		d.Score = *op.worth
	}
	return d
}

// Discard takes everything back.
func (st *Statement) Discard() {
	st.Rollback(0)
	if st.begun {
		st.tx.Discard()
	}
	st.begun = false
	st.release()
}

// Commit makes the statement final and returns what is to be done, evictions first.
func (st *Statement) Commit() []Decision {
	out := make([]Decision, 0, len(st.log))
	evicts := false
	for _, want := range [...]operationKind{evicted, placed, bound} {
		for i := range st.log {
			op := &st.log[i]
			if op.kind != want {
				continue
			}
			if op.kind == evicted {
				out = append(out, st.evictionDecision(op))
			} else {
				out = append(out, st.decisions[op.decision-1])
			}
			d := &out[len(out)-1]
			d.Claims = slices.Clone(d.Claims) // the State has those of the log
			if op.kind == placed {
				st.tx.Keep(op.task.Job)
			}
			if d.Action == Bind && op.task.Job.Preemptible {
				st.clerk.settleIn(op.task)
			}
			if op.kind != evicted && op.task.Job.Stands() {
				st.tx.SetTorn(op.task.Job, 0)
			}
			if op.task.Shadows() != nil {
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
		case retired:
			st.clerk.record(Record{Kind: Retired, Job: op.job.ID, Score: op.worth})
		}
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

// setGroupScores tells the decisions since the checkpoint how their group was chosen: it
// is the first of the choices.
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
