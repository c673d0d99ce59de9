package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Statement is an undo log over State. Its changes are visible to hooks at once;
// Rollback takes them back one by one, last first, and restores everything but
// node versions, which only grow. Commit makes the rest final, all or nothing.
type Statement struct {
	session *Session
	log     []operation
	// weighing says how the plan was found that evictions belong to.
	weighing *Weighing
}

type operation struct {
	kind     operationKind
	task     *cluster.Task
	job      *cluster.Job // of retired
	decision Decision
	shadow   *cluster.Job // of landed: the job that the task was placed for
	freed    uint64       // of evicted: when room on the node was given back before
}

type operationKind uint8

const (
	placed operationKind = iota
	evicted
	bound
	landed
	retired
)

// Begin opens an empty statement.
func (s *Session) Begin() *Statement { return &Statement{session: s} }

// Allocate places the task: it is bound, or nominated where part of its room is
// still releasing. It fails, changing nothing, if the room is not there.
func (st *Statement) Allocate(t *cluster.Task, n *cluster.Node, claims []cluster.Claim) error {
	return st.allocate(t, Decision{Node: n.Name, Claims: claims}, n)
}

func (st *Statement) allocate(t *cluster.Task, d Decision, n *cluster.Node) error {
	if err := st.session.State.Place(t, n, d.Claims); err != nil {
		return err
	}
	st.choose(t)
	d.Action, d.Task = Bind, t.Ref()
	t.Started = st.session.Now
	if t.Status == cluster.Nominated {
		d.Action = Nominate
		t.Started, t.Promised = 0, st.session.Now
	}
	if g := n.Group(); g != nil {
		d.Group = g.Key
	}
	st.log = append(st.log, operation{kind: placed, task: t, decision: d})
	st.session.tell(Allocated, t, n, false)
	return nil
}

// Evict asks a bound task to go, for the sake of the job; its room is releasing from now on.
func (st *Statement) Evict(t *cluster.Task, forJob string, why Reason) error {
	n := t.Node
	freed := n.Freed()
	if err := st.session.State.Evict(t); err != nil {
		return err
	}
	d := Decision{Action: EvictIt, Task: t.Ref(), Node: n.Name, Claims: t.Claims, Reason: why, For: forJob, Weighing: st.weighing}
	st.log = append(st.log, operation{kind: evicted, task: t, decision: d, freed: freed})
	st.session.tell(Deallocated, t, n, false)
	return nil
}

// Bind turns a nomination into a binding if the room is really free by now.
func (st *Statement) Bind(t *cluster.Task) bool {
	if !st.session.State.Bind(t) {
		return false
	}
	t.Started = st.session.Now
	d := Decision{Action: Bind, Task: t.Ref(), Node: t.Node.Name, Claims: t.Claims}
	if g := t.Node.Group(); g != nil {
		d.Group = g.Key
	}
	st.log = append(st.log, operation{kind: bound, task: t, decision: d})
	return true
}

// land promises what the placed shadow job holds to the tasks it stands for.
func (st *Statement) land(shadow *cluster.Job) {
	for _, t := range shadow.Tasks() {
		if t.Shadows() != nil {
			st.session.State.Land(t)
			st.log = append(st.log, operation{kind: landed, task: t, shadow: shadow})
		}
	}
}

// choose fixes the job's alternative with the first of its tasks.
func (st *Statement) choose(t *cluster.Task) {
	if t.Job.Chosen < 0 {
		st.session.State.Choose(t.Job, t.Alternative)
	}
}

// hold turns the job's bindings since the checkpoint into nominations: a gang
// whose last member has to wait for its room waits as a whole.
func (st *Statement) hold(j *cluster.Job, checkpoint int) {
	for i := checkpoint; i < len(st.log); i++ {
		if op := &st.log[i]; op.kind == placed && op.task.Job == j && op.decision.Action == Bind {
			st.session.State.Unbind(op.task)
			op.task.Started, op.task.Promised = 0, st.session.Now
			op.decision.Action = Nominate
		}
	}
}

// Checkpoint marks the present for Rollback.
func (st *Statement) Checkpoint() int { return len(st.log) }

// Rollback takes back everything since the checkpoint.
func (st *Statement) Rollback(checkpoint int) {
	state := st.session.State
	for i := len(st.log) - 1; i >= checkpoint; i-- {
		switch op := &st.log[i]; op.kind {
		case placed:
			n := op.task.Node
			freed := n.Freed()
			state.Clear(op.task)
			n.Refreed(freed)
			st.session.tell(Deallocated, op.task, n, true)
		case evicted:
			if err := state.Unevict(op.task); err != nil {
				st.session.fail("engine", "undo: %v", err)
			}
			op.task.Node.Refreed(op.freed)
			st.session.tell(Allocated, op.task, op.task.Node, true)
		case bound:
			state.Unbind(op.task)
			op.task.Started = 0
		case landed:
			state.Unland(op.task, op.shadow)
		case retired:
			state.Unretire(op.job)
		}
	}
	st.log = st.log[:checkpoint]
}

// displace remembers for whom the task's job had to go.
func (st *Statement) displace(d *Decision) {
	job := st.session.State.Job(d.For)
	if job == nil {
		return
	}
	if st.session.served == nil {
		st.session.served = map[*cluster.Job]bool{}
	}
	st.session.served[job] = true
	if i, known := slices.BinarySearch(job.Displaced, d.Task.Job); !known {
		job.Displaced = slices.Insert(job.Displaced, i, d.Task.Job)
	}
}

// moves tells the eviction of a task where it lands.
func (st *Statement) moves(decisions []Decision, landing *Decision) {
	for i := range decisions {
		if d := &decisions[i]; d.Action == EvictIt && d.Task == landing.Task {
			d.Landing = landing.Node
		}
	}
}

// Discard takes everything back.
func (st *Statement) Discard() { st.Rollback(0) }

// Commit makes the statement final and returns what is to be done, evictions first.
func (st *Statement) Commit() []Decision {
	out := make([]Decision, 0, len(st.log))
	for _, want := range [...]operationKind{evicted, placed, bound} {
		for i := range st.log {
			op := &st.log[i]
			if op.kind != want {
				continue
			}
			d := op.decision
			d.Claims = slices.Clone(d.Claims) // the State has those of the log
			out = append(out, d)
			if op.kind == placed {
				st.session.State.Keep(op.task.Job)
			}
			if op.kind != evicted && op.task.Job.Stands() {
				op.task.Job.Torn = 0
			}
			if op.task.Shadows() != nil {
				st.moves(out, &d)
			}
			if op.kind == evicted {
				st.displace(&op.decision)
			}
		}
	}
	for i := range out {
		d := &out[i]
		st.session.record(Record{Kind: d.Action.event(), Job: d.Task.Job, Task: d.Task, Node: d.Node, Decision: d})
	}
	if len(out) > 0 {
		st.session.denied = nil
	}
	st.log = nil
	return out
}
