package engine

import (
	"math"

	"github.com/berth-project/berth/cluster"
)

// This file has the methods of Session that hooks and adapters may call.

// Begin opens an empty statement. Its changes are visible to all hooks at once, and are
// undone unless they are committed.
func (s *Session) Begin() *Statement {
	if s.closed {
		return &Statement{clerk: &s.clerk, session: s} // its methods return an error
	}
	return s.clerk.begin()
}

// Place places the job's pending tasks in the statement: the minimum as a whole or not at
// all, then as much surplus as fits. The alternatives of the job are tried in order, and
// the first that can be placed is chosen. Simulation, admission, adapters and the real
// scheduler all use this function.
//
// A nil refusal means that every task is placed. A refusal with Surplus set means that the
// minimum is placed and some surplus is not. In a turn of the session itself, Place is
// asked for less: for the minimum alone or, if the job has its minimum, for one more task.
// A nil refusal then means that this much is placed.
func (s *Session) Place(stmt *Statement, job *cluster.Job) *Refusal {
	stmt.placer = s.placer(stmt)
	return stmt.placer.place(job)
}

// Devices returns what a task of the shape would hold of the node's devices, if it were
// placed there now. A score that depends on the choice of devices calls it. It returns
// false if the devices do not have enough room for the task.
func (s *Session) Devices(shape *cluster.Shape, n *cluster.Node) ([]cluster.Claim, bool) {
	return s.finder.devices(shape, n)
}

// Asks returns how much of the resource the tasks request together. How much of a device a
// task takes may depend on the device and is known only when it is placed; until then it
// counts as the most that it would take on any device that it may use.
func (s *Session) Asks(tasks []*cluster.Task, resource string) int64 {
	return s.accounts.sum(tasks, resource)
}

// ChargeOf returns by how much the tasks, once placed, increase what the queue uses of the
// resource. It differs from Asks for MIG slices: if the queue sets no quota, limit or
// weight for a kind of slice, a slice counts as its fraction of nvidia.com/gpu.
func (s *Session) ChargeOf(q *cluster.Queue, tasks []*cluster.Task, resource string) int64 {
	return s.accounts.chargeOf(q, tasks, resource)
}

// ChargeUnplaced is like ChargeOf, and counts only those of the tasks that are not placed.
func (s *Session) ChargeUnplaced(q *cluster.Queue, tasks []*cluster.Task, resource string) int64 {
	return s.accounts.chargeUnplaced(q, tasks, resource)
}

// Lacking returns the pending tasks that the minimum of the alternative needs, in the order
// in which they are placed.
func (s *Session) Lacking(alt *cluster.Alternative) []*cluster.Task {
	return s.shortage(nil).lacking(alt)
}

// Lacks returns the tasks that the job's next turn is for, in the first alternative that
// would be tried: the pending tasks that its minimum needs or, if it has its minimum, the
// next surplus task.
func (s *Session) Lacks(job *cluster.Job) []*cluster.Task {
	return s.shortage(nil).lacks(job)
}

// CompareTasks compares two tasks of one job by the TaskOrder hooks: a negative result
// means that a is placed first. It returns 0 if no hook prefers one of them; such tasks are
// placed in the order in which the job lists them.
func (s *Session) CompareTasks(a, b *cluster.Task) int {
	return s.shortage(nil).compare(a, b)
}

// Order returns the pending jobs in the order of their turns, as the queues are now. A
// session may use another order, since each job that it places changes what queues use.
func (s *Session) Order(jobs []*cluster.Job) []*cluster.Job {
	out := make([]*cluster.Job, 0, len(jobs))
	t := s.order.lineUp(jobs)
	for job := t.next(); job != nil; job = t.next() {
		out = append(out, job)
	}
	return out
}

// Standings returns what the StandingRule hooks answer for the queue and for each of its
// ancestors, the queue's own first. It is empty if no plugin of the profile registered
// such a hook.
func (s *Session) Standings(queue string) []Standing { return s.explainer.standings(queue) }

// Census calls the hooks of the purpose for the first possible victim of each job that may
// have victims. It returns which of these victims may be evicted for the tasks that the job
// lacks, and which are protected. It evicts nothing.
func (s *Session) Census(p Purpose, job *cluster.Job, lacks []*cluster.Task) Census {
	may := s.victims.may(p, job, lacks, false)
	if may == nil {
		return Census{NoneAllowed: true}
	}
	var out Census
	seen := map[*cluster.Job]bool{}
	for _, c := range s.victims.rivals(job, math.MaxInt, nil) {
		if seen[c.task.Job] {
			continue
		}
		v := VictimOf(c.task)
		if a := may(v); a.protector != nil {
			out.Protected = protect(out.Protected, a.protector, v.Job.ID)
		} else {
			out.Allowed = append(out.Allowed, v)
		}
		seen[c.task.Job] = true
	}
	return out
}

// Census says which victims may be evicted for a job. Each is judged while all others
// still run, so that a plan of several victims may be judged otherwise.
type Census struct {
	NoneAllowed bool         // no victim may be evicted for this job
	Allowed     []*Victim    // at most one for each job, in the order in which they would be evicted
	Protected   []Protection // the jobs that are protected, by plugin and reason
}

// ProtectedBy returns which plugin protects the victim, and why. It returns nil if the victim
// may be evicted for the tasks that the job lacks, and an empty Protector if a hook protects
// all victims from this job.
func (s *Session) ProtectedBy(p Purpose, job *cluster.Job, lacks []*cluster.Task, v *Victim) *Protector {
	may := s.victims.may(p, job, lacks, false)
	if may == nil {
		return &Protector{}
	}
	return may(v).protector
}

// WakeAt requests that the next session begins at the given time at the latest, in
// nanoseconds since 1970, even if nothing changes until then. The earliest request counts.
// It is valid only until the next session, so a plugin calls WakeAt in every session, best
// in OnSessionOpen. A time that is not after Session.Now is ignored. At that time, refused
// jobs that a plugin with the hint WakeTime rejected (see AddWake) are tried
// again.
func (s *Session) WakeAt(at int64) {
	if at > s.Now && (s.wake == 0 || at < s.wake) {
		s.wake = at
	}
}

// Published returns the number that the plugin published last (see Publish), in this engine
// or in the one that it resumes after a restart. A plugin that learns its parameters
// continues from there.
func (s *Session) Published(plugin string) (parameters uint64, ok bool) {
	parameters, ok = s.engine.index.params[parametersKey(s.Hooks, plugin)]
	return parameters, ok
}

// Changes returns the changes that the session has made to State so far. It is empty unless
// Options.Record is set.
func (s *Session) Changes() []cluster.Change {
	if s.closed {
		return s.changes
	}
	return s.clerk.changes
}
