package engine

// nextWake returns when the next session should run if nothing changes before, in
// nanoseconds since 1970: when a back-off ends, a reservation expires, an evicted task
// becomes overdue, a node no longer avoids a shape, a job is not held back any more, or a plugin asked for a session by
// WakeAt. 0 means that there is no such time.
func (s *Session) nextWake() int64 {
	if b := s.engine.backlog; s.options.Patient && b != nil && len(b.timers.Items) > 0 {
		s.WakeAt(b.timers.Items[0].parked.RetryAt)
	}
	if hold := s.options.Hold; hold > 0 {
		for _, t := range s.View.Nominated() {
			s.WakeAt(t.ReservedAt() + hold + 1)
		}
		for _, t := range s.View.Moving() {
			s.WakeAt(t.Landing().ReservedAt() + hold + 1)
		}
		for _, t := range s.View.Releasing() {
			if at, evicted := t.EvictedAt(); evicted && !t.Overdue() {
				s.WakeAt(at + hold + 1)
			}
		}
	}
	s.WakeAt(s.View.HeldBack())
	s.View.Avoiding(func(until int64) { s.WakeAt(until) })
	return s.wake
}
