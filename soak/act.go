package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Schedule runs a session; the scan checks each decision of the index.
func (w *World) Schedule() error {
	before, stood := w.held(), w.standing()
	s := w.engine.Open(w.State, engine.Options{Search: engine.Twin})
	out, err := s.Run()
	s.Close()
	if err != nil {
		return err
	}
	w.Decisions += len(out.Decisions)
	w.Refusals += len(out.Refusals)
	if err := w.checkLimits(before); err != nil {
		return err
	}
	if err := w.checkGangs(); err != nil {
		return err
	}
	if err := w.checkTopology(stood); err != nil {
		return err
	}
	return w.checkRefusals(out)
}

// checkGangs makes sure that after a session no gang holds promises for less than its minimum.
func (w *World) checkGangs() error {
	for _, j := range w.State.Jobs() {
		if n := j.Placed(); n > 0 && !j.Stands() {
			return fmt.Errorf("%s: %d tasks hold room, the minimum is %d: %s", j.ID, n, j.Alternatives[j.Chosen].Min, describe(j))
		}
		if err := checkSubgroups(j); err != nil {
			return err
		}
	}
	return nil
}

// checkRefusals makes sure that nothing was half placed by a refused job and
// that its sums add up to the nodes there are.
func (w *World) checkRefusals(out engine.Outcome) error {
	for _, r := range out.Refusals {
		if r.Surplus {
			continue
		}
		for _, t := range r.Job.Tasks() {
			if r.Job.Chosen < 0 && t.Node != nil {
				return fmt.Errorf("%s was refused, yet %s is on %s", r.Job.ID, t.ID, t.Node.Name)
			}
		}
		if r.Reason == "" || len(r.Attempts) == 0 {
			return fmt.Errorf("%s was refused without a reason", r.Job.ID)
		}
		for _, a := range r.Attempts {
			sum := 0
			for _, c := range a.Counts {
				sum += c.Nodes
			}
			if a.Before == nil && len(a.Groups) == 0 && (a.Level == "" || len(a.Domains) > 0) && sum != a.Nodes {
				return fmt.Errorf("%s: rejections of %d nodes were counted, there are %d", r.Job.ID, sum, a.Nodes)
			}
		}
	}
	return nil
}

// Evict makes room as an adapter would: it evicts some tasks and places a
// pending job on what is then promised to nobody, or takes it all back.
func (w *World) Evict() error {
	before, stood := w.held(), w.standing()
	s := w.engine.Open(w.State, engine.Options{Search: engine.Twin})
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
	w.Decisions += len(stmt.Commit())
	if err := w.checkTopology(stood); err != nil {
		return err
	}
	return w.checkLimits(before)
}

// evictSome evicts whole jobs, since a gang below its minimum is no gang.
func (w *World) evictSome(stmt *engine.Statement) []*cluster.Job {
	var victims []*cluster.Job
	for _, j := range w.State.Jobs() {
		if !j.Preemptible || !w.chance(30) {
			continue
		}
		for _, t := range j.Tasks() {
			if t.Status != cluster.Bound {
				continue
			}
			if err := stmt.Evict(t, "", "Soak"); err == nil {
				victims = append(victims, j)
			}
		}
	}
	return victims
}

// Rollback does a little of everything in a statement, takes it back, and
// compares the books with what they were, versions aside.
func (w *World) Rollback() error {
	before := Dump(w.State)
	s := w.engine.Open(w.State, engine.Options{Search: engine.Twin})
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
			return fmt.Errorf("rollback to a checkpoint changed the books:\n%s\nbecame\n%s", middle, now)
		}
	}
	stmt.Discard()
	if now := Dump(w.State); now != before {
		return fmt.Errorf("rollback changed the books:\n%s\nbecame\n%s", before, now)
	}
	return nil
}

// describe lists where a job's tasks stand.
func describe(j *cluster.Job) string {
	out := ""
	for _, t := range j.Tasks() {
		out += fmt.Sprintf("%s %s", t.Name, t.Status)
		if t.Landing() != nil {
			out += " moving"
		}
		out += "; "
	}
	return out
}
