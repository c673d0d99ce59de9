package engine

// nextWake is when the next session should be run if nothing changes before: a
// refused job is tried again, a reservation expires, an evicted task is overdue, a
// node or a task is avoided or spared no more, or a plugin asked for it. 0: never.
func (s *Session) nextWake() int64 {
	if b := s.engine.backlog; s.options.Patient && b != nil && len(b.timers.Items) > 0 {
		s.WakeAt(b.timers.Items[0].parked.RetryAt)
	}
	if hold := s.options.Hold; hold > 0 {
		for _, t := range s.View.Nominated() {
			s.WakeAt(t.Promised + hold + 1)
		}
		for _, t := range s.View.Moving() {
			s.WakeAt(t.Landing().Promised + hold + 1)
		}
		for _, t := range s.View.Releasing() {
			if at, evicted := t.EvictedAt(); evicted && !t.Overdue() {
				s.WakeAt(at + hold + 1)
			}
		}
	}
	s.View.Avoiding(func(until int64) { s.WakeAt(until) })
	return s.wake
}
