package whatif

import (
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
)

// newEntitlement returns what the queues of the workload are entitled to, and which jobs
// could be victims for it. It reads the State at the end of the simulation, when sessions
// decide nothing any more. Searches has an entry for each purpose for which the engine
// searched for victims for the workload.
func newEntitlement(l *lab, searches []engine.ProtectedVictims) *explain.Entitlement {
	w := l.workload
	c := &explain.Entitlement{State: w.state, Workload: w.id, DelayedUntil: w.refusal.Delayed, Census: map[engine.Purpose]engine.Census{}}
	s := l.engine.Open(w.state, engine.Options{Now: l.now})
	defer s.Close()
	lacks := s.Lacking(w.form())
	for _, st := range s.Standings(w.job().Queue) {
		if ask := s.ChargeOf(w.state.Queue(st.Queue), lacks, st.Resource); ask > 0 {
			c.Lacking = c.Lacking.With(st.Resource, ask)
			c.Standings = append(c.Standings, st)
		}
	}
	for _, x := range searches {
		if _, known := c.Census[x.Purpose]; !known {
			c.Purposes = append(c.Purposes, x.Purpose)
			c.Census[x.Purpose] = s.Census(x.Purpose, w.job(), lacks)
		}
	}
	return c
}
