package soak

import (
	"fmt"

	"github.com/berth-project/berth/engine"
)

// statements has the steps that use a statement directly, without a whole session.
type statements struct {
	dice      *dice
	site      *site
	scheduler *scheduler
	executor  *executor
	counts    *Counts
}

// evictAndPlace makes room as an adapter does: it evicts some tasks and places a
// pending job on the room that is free then. If the job cannot be placed, everything
// is undone.
func (m *statements) evictAndPlace() error {
	before := describeState(m.scheduler.state)
	s := m.open(true)
	defer s.Close()
	stmt := s.Begin()
	victims := m.evictSome(stmt)
	pending := m.scheduler.state.Pending()
	if len(pending) == 0 || victims == 0 {
		stmt.Discard()
		return nil
	}
	job := pick(m.dice, pending)
	if refusal := s.Place(stmt, job); refusal != nil && !refusal.Surplus {
		stmt.Discard()
		return nil
	}
	decisions := stmt.Commit()
	if err := m.scheduler.record(s.Changes()...); err != nil {
		return err
	}
	if err := checkTopology(m.scheduler.state, before.nodes); err != nil {
		return err
	}
	if err := checkLimits(m.scheduler.state, before.queues); err != nil {
		return err
	}
	m.counts.Decisions += len(decisions)
	return m.executor.carryOut(decisions)
}

// open opens a session that compares each decision of the index with the scan.
func (m *statements) open(record bool) *engine.Session {
	return m.scheduler.engine.Open(m.scheduler.state, engine.Options{Now: m.site.now, Search: engine.Twin, Record: record})
}

// evictSome evicts whole jobs, so that no gang is left below its minimum. It returns
// the number of evicted tasks.
func (m *statements) evictSome(stmt *engine.Statement) (tasks int) {
	for _, j := range m.scheduler.state.Jobs() {
		if !j.Preemptible || !m.dice.chance(30) {
			continue
		}
		for _, t := range j.Tasks() {
			if t.Runs() && stmt.Evict(t, "", "Soak") == nil {
				tasks++
			}
		}
	}
	return tasks
}

// rollBack evicts and places in a statement, undoes it, and checks that State is as it
// was before, except for versions.
func (m *statements) rollBack() error {
	state := m.scheduler.state
	before := dump(state)
	s := m.open(false)
	defer s.Close()
	stmt := s.Begin()
	m.evictSome(stmt)
	atCheckpoint, checkpoint := "", 0
	for i, j := range state.Pending() {
		if i == 1 {
			checkpoint, atCheckpoint = stmt.Checkpoint(), dump(state)
		}
		s.Place(stmt, j)
	}
	if atCheckpoint != "" {
		stmt.Rollback(checkpoint)
		if now := dump(state); now != atCheckpoint {
			return fmt.Errorf("rollback to a checkpoint changed State:\n%s\nbecame\n%s", atCheckpoint, now)
		}
	}
	stmt.Discard()
	if now := dump(state); now != before {
		return fmt.Errorf("rollback changed State:\n%s\nbecame\n%s", before, now)
	}
	return nil
}
