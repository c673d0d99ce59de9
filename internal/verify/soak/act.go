package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Evict makes room as an adapter does: it evicts some tasks and places a pending job
// on the room that is free then. If the job cannot be placed, all of it is undone.
func (w *World) Evict() error {
	before := w.prior()
	s := w.engine.Open(w.State, engine.Options{Now: w.clock, Search: engine.Twin, Record: true})
	defer s.Close()
	stmt := s.Begin()
	victims := w.evictSome(stmt)
	pending := w.State.Pending()
	if len(pending) == 0 || len(victims) == 0 {
		stmt.Discard()
		return nil
	}
	job := pick(w, pending)
	if refusal := s.Place(stmt, job); refusal != nil && !refusal.Surplus {
		stmt.Discard()
		return nil
	}
	decisions := stmt.Commit()
	if err := w.writeLog(s.Changes()...); err != nil {
		return err
	}
	if err := w.checkTopology(before.at); err != nil {
		return err
	}
	if err := w.checkLimits(before.held); err != nil {
		return err
	}
	return w.carryOut(decisions, false)
}

// evictSome evicts whole jobs, so that no gang is left below its minimum.
func (w *World) evictSome(stmt *engine.Statement) []*cluster.Job {
	var victims []*cluster.Job
	for _, j := range w.State.Jobs() {
		if !j.Preemptible || !w.chance(30) {
			continue
		}
		for _, t := range j.Tasks() {
			if !t.Runs() {
				continue
			}
			if err := stmt.Evict(t, "", "Soak"); err == nil {
				victims = append(victims, j)
			}
		}
	}
	return victims
}

// Rollback evicts and places in a statement, undoes it, and checks that State is as
// it was before, except for versions.
func (w *World) Rollback() error {
	before := Dump(w.State)
	s := w.engine.Open(w.State, engine.Options{Now: w.clock, Search: engine.Twin})
	defer s.Close()
	stmt := s.Begin()
	w.evictSome(stmt)
	middle := ""
	mark := 0
	for i, j := range w.State.Pending() {
		if i == 1 {
			mark, middle = stmt.Checkpoint(), Dump(w.State)
		}
		s.Place(stmt, j)
	}
	if middle != "" {
		stmt.Rollback(mark)
		if now := Dump(w.State); now != middle {
			return fmt.Errorf("rollback to a checkpoint changed State:\n%s\nbecame\n%s", middle, now)
		}
	}
	stmt.Discard()
	if now := Dump(w.State); now != before {
		return fmt.Errorf("rollback changed State:\n%s\nbecame\n%s", before, now)
	}
	return nil
}
