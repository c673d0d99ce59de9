package engine

import (
	"math"

	"github.com/berth-project/berth/cluster"
)

// This file is what hooks and adapters may ask of the session.

// Begin opens an empty statement.
func (s *Session) Begin() *Statement { return s.clerk.begin() }

// Place puts the job's pending tasks onto nodes, in the statement: the minimum
// all together or not at all, then what surplus fits. Its alternatives are tried
// in order and the first that places wins. It is the one place function:
// simulation, admission, adapters and the real thing all come here.
//
// A nil refusal means that every task has its place; one marked Surplus that the
// minimum has. In a session's own turns a job is given its minimum and no more, or
// where it has that one task more: a nil refusal then means that it has.
func (s *Session) Place(stmt *Statement, job *cluster.Job) *Refusal { return s.placer(stmt).place(job) }

// Devices are what a task of the shape would get of the node's devices as they are
// now, for hooks whose score depends on that; false where they cannot hold it.
func (s *Session) Devices(shape *cluster.Shape, n *cluster.Node) ([]cluster.Claim, bool) {
	return s.finder.devices(shape, n)
}

// Asks is how much of the resource the tasks ask for together. What a task takes
// of a device is known once it has one; until then the most that a device of its
// kind would give stands for it.
func (s *Session) Asks(tasks []*cluster.Task, resource string) int64 {
	return s.accounts.sum(tasks, resource)
}

// ChargeOf is what the tasks, once placed, count as in the queue's account of the
// resource. It differs from what they ask for where they ask for MIG slices: those
// that the queue has no terms for count as their fraction of nvidia.com/gpu.
func (s *Session) ChargeOf(q *cluster.Queue, tasks []*cluster.Task, resource string) int64 {
	return s.accounts.chargeOf(q, tasks, resource)
}

// ChargeStill is ChargeOf for those of the tasks that are not placed.
func (s *Session) ChargeStill(q *cluster.Queue, tasks []*cluster.Task, resource string) int64 {
	return s.accounts.chargeUnplaced(q, tasks, resource)
}

// Lacking are the pending tasks that the minimum needs, in the order they are placed.
func (s *Session) Lacking(alt *cluster.Alternative) []*cluster.Task {
	return s.shortage(nil).lacking(alt)
}

// Lacks are the tasks that the job's turn is for, in the first form that would be
// tried: those that its minimum needs or, where it has its minimum, the next one.
func (s *Session) Lacks(job *cluster.Job) []*cluster.Task {
	return s.shortage(nil).lacks(job)
}

// CompareTasks orders tasks of a job: by the hooks, then as they were written.
func (s *Session) CompareTasks(a, b *cluster.Task) int {
	return s.shortage(nil).compare(a, b)
}

// Order sorts pending jobs by when their turn comes, as long as none is placed.
func (s *Session) Order(jobs []*cluster.Job) []*cluster.Job {
	out := make([]*cluster.Job, 0, len(jobs))
	t := s.order.lineUp(jobs)
	for job := t.next(); job != nil; job = t.next() {
		out = append(out, job)
	}
	return out
}

// Standings are those of the queue and of all above it, the queue's own first.
// There are none where no plugin of the profile knows what a queue should have.
func (s *Session) Standings(queue string) []Standing { return s.explainer.standings(queue) }

// Census asks which victims may leave for the tasks that the job lacks, and which are
// protected.
func (s *Session) Census(p Purpose, job *cluster.Job, lacks []*cluster.Task) Census {
	may := s.victims.may(p, job, lacks, false)
	if may == nil {
		return Census{Barred: true}
	}
	var out Census
	seen := map[*cluster.Job]bool{}
	for _, c := range s.victims.rivals(job, math.MaxInt, nil) {
		if seen[c.task.Job] {
			continue
		}
		v := VictimOf(c.task)
		if a := may(v); a.spared != nil {
			out.Spared = protect(out.Spared, a.spared, v.Job.ID)
		} else {
			out.May = append(out.May, v)
		}
		seen[c.task.Job] = true
	}
	return out
}

// Census is which victims might leave for a job, each asked about while all the others
// are there.
type Census struct {
	Barred bool      // no victim may leave for this job
	May    []*Victim // one of each job, the first to be evicted first
	Spared []Protection
}

// Spares says which plugin protects the victim and why; nil where it may leave for
// the tasks that the job lacks.
func (s *Session) Spares(p Purpose, job *cluster.Job, lacks []*cluster.Task, v *Victim) *Spared {
	may := s.victims.may(p, job, lacks, false)
	if may == nil {
		return &Spared{}
	}
	return may(v).spared
}

// WakeAt asks for a session at the time, in nanoseconds since 1970, or earlier: something
// may be decided then although nothing changes until then. It holds
// until the next session: a plugin calls it in every session, best in OnSessionOpen. A
// time that is not after the session's own is ignored. Refused jobs whose plugin gave the
// hint WakeTime are tried again then.
func (s *Session) WakeAt(at int64) {
	if at > s.Now && (s.wake == 0 || at < s.wake) {
		s.wake = at
	}
}

// Published is what the plugin published last (see Publish), in this engine or in
// the one that it resumes: a plugin that learns continues from there after a restart.
func (s *Session) Published(plugin string) (parameters uint64, ok bool) {
	parameters, ok = s.engine.index.params[plugin]
	return parameters, ok
}

// Changes are what the session did to the State so far, where it records that.
func (s *Session) Changes() []cluster.Change { return s.clerk.changes }
