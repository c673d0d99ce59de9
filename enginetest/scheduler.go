package enginetest

import (
	"errors"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Scheduler runs one session after another on a State and calls the observers of
// plugins, as a scheduler that keeps running does. The test applies the facts in between,
// such as cluster.TaskSeen for a task that was bound.
type Scheduler struct {
	Engine *engine.Engine // makes the decisions
	State  *cluster.State // is changed by Run and Apply
}

// Run runs a patient session at the time now, in nanoseconds since 1970, and calls the
// observers with its decisions. A patient session tries only new jobs and jobs that a
// change may help.
func (s *Scheduler) Run(now int64) (engine.Outcome, error) {
	session := s.Engine.Open(s.State, engine.Options{Now: now, Patient: true})
	out, err := session.Run()
	err = errors.Join(err, session.Close())
	return out, errors.Join(err, s.Engine.Committed(&out))
}

// Apply applies a fact: a change that is reported from outside. If it confirms a binding
// or an eviction, the observers are called.
func (s *Scheduler) Apply(c cluster.Change) error {
	report := s.Engine.ObserveFact(s.State, c)
	if err := s.State.Apply(c); err != nil {
		return err
	}
	return report()
}
