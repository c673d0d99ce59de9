package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// claim is what a workload that is refused could have from others: how its queue
// stands with what it lacks, and which workloads each adapter would evict.
type claim struct {
	workload  *workload
	asks      cluster.Resources
	standings []engine.Standing
	sought    []engine.Purpose // what the adapters of the profile were asked for
	census    map[engine.Purpose]engine.Census
}

// newClaim looks at the end of the simulation, where nothing changes any more.
func newClaim(l *lab, sought []engine.Sparing) *claim {
	w := l.workload
	c := &claim{workload: w, census: map[engine.Purpose]engine.Census{}}
	s := l.engine.Open(w.state, engine.Options{Now: l.now})
	defer s.Close()
	lacks := s.Lacking(w.form())
	for _, st := range s.Standings(w.job().Queue) {
		if ask := s.ChargeOf(w.state.Queue(st.Queue), lacks, st.Resource); ask > 0 {
			c.asks = c.asks.With(st.Resource, ask)
			c.standings = append(c.standings, st)
		}
	}
	for _, x := range sought {
		if _, known := c.census[x.Purpose]; !known {
			c.sought = append(c.sought, x.Purpose)
			c.census[x.Purpose] = s.Census(x.Purpose, w.job(), lacks)
		}
	}
	return c
}

// room fills in how its queue stands and which workloads the adapters spared.
func (r *Report) room(c *claim, ph Phrases) {
	r.Queues = wire.Map(c.standings, wire.NewStanding)
	r.Refusal.Spared = wire.NewSparings(wire.Map(c.sought, func(p engine.Purpose) engine.Sparing {
		return engine.Sparing{Purpose: p, Barred: c.census[p].Barred, Protection: c.census[p].Spared}
	}))
	r.Notes.Reasons = append(c.queueLines(), c.roomLines(ph)...)
	if until := c.workload.refusal.Delayed; until > 0 {
		r.Notes.Reasons = append(r.Notes.Reasons, delayText(c.workload.job(), until))
	}
}

// delayText says why the job evicts nothing yet.
func delayText(j *cluster.Job, until int64) string {
	from := "it was created"
	if j.Evicted > j.Created {
		from = "it was evicted"
	}
	return fmt.Sprintf("It evicts and moves nothing before %s: its preemption delay is %s from when %s.", quantity.Time(until), quantity.Span(j.PreemptionDelay), from)
}

// queueLines say how its queue stands with devices, or with cores where it wants
// none; and so every queue above it that keeps it from its share.
func (c *claim) queueLines() []string {
	if len(c.asks) == 0 || !shared(c.workload.state, c.standings[0].Queue) && c.standings[0].Quota < 0 {
		return nil // there is nothing to share: one queue, and no quota
	}
	main := c.asks[0].Name
	for _, a := range c.asks {
		if quantity.IsDevice(a.Name) {
			main = a.Name
		}
	}
	var out []string
	for i := range c.standings {
		st := &c.standings[i]
		own := st.Queue == c.standings[0].Queue
		short := st.Used+c.asks.Of(st.Resource) > st.Share
		if own && (st.Resource == main || short) || short {
			out = append(out, standingText(st))
		}
	}
	return out
}

// shared reports whether another queue than this one holds anything.
func shared(s *cluster.State, queue string) bool {
	return slices.ContainsFunc(s.Queues(), func(q *cluster.Queue) bool { return q.Leaf() && q.Name != queue && len(q.Used) > 0 })
}

func standingText(st *engine.Standing) string {
	text := fmt.Sprintf("Queue %s holds %s; its fair share is %s", st.Queue, quantity.Resource(st.Resource, st.Used), amountOf(st.Resource, st.Share))
	if st.Quota >= 0 {
		text += ", its quota " + amountOf(st.Resource, st.Quota)
	}
	return text + fmt.Sprintf("; with what is pending it asks for %s.", amountOf(st.Resource, st.Request))
}

// verbs complete "Nothing can be …" and "… could be …".
var verbs = map[engine.Purpose]string{engine.Reclaim: "reclaimed", engine.Preempt: "preempted"}

// roomLines say why no workload is evicted for it, adapter by adapter. Moves are left
// out: they take nothing from other workloads, so why none was made is of no interest.
func (c *claim) roomLines(ph Phrases) []string {
	state := c.workload.state
	var out, idle []string
	for _, p := range c.sought {
		verb := verbs[p]
		if verb == "" {
			continue
		}
		x := c.census[p]
		spared := ph.sparedText(state, p, x.Spared)
		switch {
		case p == engine.Reclaim && (x.Barred || spared != "") && !shared(state, c.workload.job().Queue):
			out = append(out, "Nothing can be reclaimed: no other queue holds anything.")
		case x.Barred:
			out = append(out, "Nothing can be "+verb+c.barred(p)+".")
		case len(x.May) > 0:
			may := wire.Map(x.May, func(v *engine.Victim) string { return v.Job.ID })
			text := fmt.Sprintf("%s could be %s, but no plan was found that would be enough", List(may, 3), verb)
			if spared != "" {
				text += fmt.Sprintf("; %s spares %s", p, spared)
			}
			out = append(out, text+".")
		case spared != "":
			out = append(out, fmt.Sprintf("Nothing can be %s: %s spares %s.", verb, p, spared))
		default:
			idle = append(idle, verb)
		}
	}
	if len(idle) > 0 {
		out = append(out, "Nothing can be "+strings.Join(idle, " or ")+": "+c.noVictims()+".")
	}
	return out
}

// noVictims says why there is no workload that might be evicted.
func (c *claim) noVictims() string {
	firm := 0
	for _, j := range c.workload.state.Jobs() {
		if j.ID != c.workload.id && j.Running() && !j.Preemptible {
			firm++
		}
	}
	switch displaced := len(c.workload.job().Displaced); {
	case firm > 0 && displaced == 0:
		return "no other workload that runs is preemptible"
	case displaced > 0:
		return "no other workload that runs is preemptible and has not made room for it before"
	}
	return "no other workload runs"
}

// barred says which share would be exceeded.
func (c *claim) barred(p engine.Purpose) string {
	if p == engine.Reclaim && len(c.asks) == 0 {
		return " for it: queues divide nothing that it lacks"
	}
	for i := range c.standings {
		st := &c.standings[i]
		if with := st.Used + c.asks.Of(st.Resource); p == engine.Reclaim && st.Queue == c.standings[0].Queue && with > st.Share {
			return fmt.Sprintf(": with it, queue %s would hold %s, more than its fair share", st.Queue, quantity.Resource(st.Resource, with))
		}
	}
	return " for it"
}
