package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Mover moves single running tasks in a session, such as to defragment a cluster. No pending job has a
// turn for it.
type Mover struct{ session *Session }

// NewMover returns a Mover for the session.
func NewMover(s *Session) Mover { return Mover{s} }

// Move moves one running task in the statement, as a plan of MakeRoom would: it evicts the task and
// reserves room for it on another node. If may is not nil, only nodes for which it returns true are
// considered. Place finds the room, so that filters, affinity and the topology of the job hold.
//
// It returns the node to which the task moves. If it returns nil, nothing is changed: the
// Protector says why the task must not move, or is nil if no node can take it.
func (m Mover) Move(stmt *Statement, t *cluster.Task, may func(*cluster.Node) bool) (*cluster.Node, *Protector) {
	s := m.session
	if p := m.Protects(t); p != nil {
		return nil, p
	}
	mark, from := stmt.Checkpoint(), t.Node
	if err := stmt.evictFor(&cluster.Job{JobDetails: &cluster.JobDetails{}}, mover(t), reasonToMove(s.Hooks)); err != nil {
		s.fault.fail("engine", "moving %s: %v", t.ID, err)
		return nil, nil
	}
	shadow := t.Job.Shadow([]*cluster.Task{t})
	s.finder.only = func(n *cluster.Node) bool { return n != from && (may == nil || may(n)) }
	defer func() { s.finder.only = nil }()
	place := s.placer(stmt)
	place.aim.quiet = true
	if place.place(shadow) != nil || s.fault.err != nil {
		stmt.Rollback(mark)
		return nil, nil
	}
	stmt.reserveMove(shadow)
	return t.Landing().Node, nil
}

// Err returns the error of a plugin that broke its contract in the session, or nil.
func (m Mover) Err() error { return m.session.fault.err }

// Protects returns what protects the running task from being moved, or nil.
func (m Mover) Protects(t *cluster.Task) *Protector {
	s, j := m.session, t.Job
	switch form := &j.Alternatives[max(j.Chosen, 0)]; {
	case !j.Preemptible:
		return &Protector{"engine", VictimNotPreemptible}
	case !s.victims.mayBeVictim(t, &cluster.Job{JobDetails: &cluster.JobDetails{}}), !mover(t).isValid(), form.Running, form.Whole != nil, !j.HasMinimum():
		return &Protector{"engine", VictimCannotMove}
	}
	may := s.victims.may(Move, &cluster.Job{Queue: cluster.DefaultQueue, JobDetails: &cluster.JobDetails{}}, nil, false)
	if may == nil {
		return &Protector{"engine", NoPluginAllows}
	}
	return may(mover(t)).protector
}

// reasonToMove returns the reason of the evictions of tasks that move.
func reasonToMove(h *Hooks) Reason {
	i := slices.IndexFunc(h.evictionPurposes, func(e EvictionPurpose) bool { return e.Purpose == Move })
	if i < 0 {
		return ""
	}
	return h.evictionPurposes[i].Reason
}
