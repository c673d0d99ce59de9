package engine

// sweep lets hooks act on their own account, once all have had their turn.
func (s *Session) sweep() []Decision {
	if len(s.Hooks.sweeps) == 0 {
		return nil
	}
	stmt := s.clerk.begin()
	stmt.position()
	s.markTorn(stmt)
	for _, h := range s.Hooks.sweeps {
		h.fn(stmt)
	}
	return stmt.Commit()
}

// markTorn notes which gangs run below their minimum: of the jobs that changed
// since the last sweep, those that miss a task.
func (s *Session) markTorn(stmt *Statement) {
	e := s.engine
	if e.swept.state != s.State {
		e.swept.state, e.swept.jobs = s.State, 0
	}
	since := e.swept.jobs
	e.swept.jobs = s.State.JobsVersion()
	s.State.ChangedJobs(since, func(slot int) {
		j := s.State.JobAt(slot)
		switch {
		case j == nil || !s.State.Waits(j) && j.Torn == 0:
		case !j.Running() || j.Stands():
			stmt.tx.SetTorn(j, 0)
		case j.Torn == 0:
			stmt.tx.SetTorn(j, max(1, s.Now))
		}
	})
}
