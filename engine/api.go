package engine

import "github.com/berth-project/berth/cluster"

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
	return s.accounts.chargeStill(q, tasks, resource)
}

// Lacking are the pending tasks that the minimum needs, in the order they are placed.
func (s *Session) Lacking(alt *cluster.Alternative) []*cluster.Task {
	lacks := s.shortage(nil)
	return lacks.of(alt)
}

// Lacks are the tasks that the job's turn is for, in the first form that would be
// tried: those that its minimum needs or, where it has its minimum, the next one.
func (s *Session) Lacks(job *cluster.Job) []*cluster.Task {
	lacks := s.shortage(nil)
	return lacks.lacks(job)
}

// CompareTasks orders tasks of a job: by the hooks, then as they were written.
func (s *Session) CompareTasks(a, b *cluster.Task) int {
	order := s.shortage(nil)
	return order.compare(a, b)
}
