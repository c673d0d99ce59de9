package whatif

import (
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
)

// newEntitlement returns what the queues of the workload are entitled to, and which jobs
// could be victims for it. It reads the State at the end of the simulation, when sessions
// decide nothing any more. Sought has an entry for each purpose for which the engine looked
// for victims for the workload.
func newEntitlement(l *lab, sought []engine.Sparing) *explain.Entitlement {
	w := l.workload
	c := &explain.Entitlement{State: w.state, Workload: w.id, Delayed: w.refusal.Delayed, Census: map[engine.Purpose]engine.Census{}}
	s := l.engine.Open(w.state, engine.Options{Now: l.now})
	defer s.Close()
	lacks := s.Lacking(w.form())
	for _, st := range s.Standings(w.job().Queue) {
		if ask := s.ChargeOf(w.state.Queue(st.Queue), lacks, st.Resource); ask > 0 {
			c.Asks = c.Asks.With(st.Resource, ask)
			c.Standings = append(c.Standings, st)
		}
	}
	for _, x := range sought {
		if _, known := c.Census[x.Purpose]; !known {
			c.Sought = append(c.Sought, x.Purpose)
			c.Census[x.Purpose] = s.Census(x.Purpose, w.job(), lacks)
		}
	}
	return c
}
