package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// Entitlement is what a refused workload could take from other workloads: what its queue and
// the queues above it hold and are entitled to, of the resources that it lacks, and which
// workloads might be evicted for it.
type Entitlement struct {
	State        *cluster.State
	Workload     string
	DelayedUntil int64             // the end of its preemption delay, before which nothing is evicted for it; 0: it is not delayed
	Lacking      cluster.Resources // what it lacks of the resources that queues divide
	Standings    []engine.Standing // those of its own queue first
	// Purposes are the purposes for which the engine searched for victims, and Census has the
	// possible victims of each purpose, as of the end of the simulation.
	Purposes []engine.Purpose
	Census   map[engine.Purpose]engine.Census
}

func (c *Entitlement) job() *cluster.Job { return c.State.Job(c.Workload) }

// AddEntitlement adds what the queues hold and are entitled to, which workloads plugins
// protected, and why nothing is evicted for the workload. The report must have its refusal.
func (r *Report) AddEntitlement(c *Entitlement, ph Phrases) {
	r.Queues = wire.Map(c.Standings, wire.NewStanding)
	r.Refusal.Protected = wire.NewProtectedVictims(wire.Map(c.Purposes, func(p engine.Purpose) engine.ProtectedVictims {
		return engine.ProtectedVictims{Purpose: p, Barred: c.Census[p].NoneAllowed, Protection: c.Census[p].Protected}
	}))
	r.Notes.Reasons = append(c.queueLines(), c.evictionLines(ph)...)
	if c.DelayedUntil > 0 {
		r.Notes.Reasons = append(r.Notes.Reasons, delayText(c.job(), c.DelayedUntil))
	}
}

// delayText returns a sentence that says why nothing is evicted for the job yet.
func delayText(j *cluster.Job, until int64) string {
	if until == math.MaxInt64 {
		return "It evicts and moves no other task at any time: its preemptionPolicy is Never, or its preemption delay has no end."
	}
	from := "it was created"
	if j.Evicted > j.Created {
		from = "it was evicted"
	}
	return fmt.Sprintf("It evicts and moves nothing before %s: its preemption delay is %s from when %s.", quantity.Time(until), quantity.Span(j.PreemptionDelay), from)
}

// queueLines returns sentences that say what the workload's queue holds of devices or, if it
// lacks no devices, of the first resource that it lacks. They say the same of each queue, its
// own or one above it, and of each resource, if the fair share would be exceeded.
func (c *Entitlement) queueLines() []string {
	if len(c.Lacking) == 0 || !otherQueuesHold(c.State, c.Standings[0].Queue) && c.Standings[0].Quota < 0 {
		return nil // no other queue holds anything, and there is no quota: shares do not matter
	}
	main := c.Lacking[0].Name
	for _, a := range c.Lacking {
		if quantity.IsDevice(a.Name) {
			main = a.Name
		}
	}
	var out []string
	for i := range c.Standings {
		st := &c.Standings[i]
		own := st.Queue == c.Standings[0].Queue
		short := st.Used+c.Lacking.Of(st.Resource) > st.Share
		if own && (st.Resource == main || short) || short {
			out = append(out, standingText(st))
		}
	}
	return out
}

// otherQueuesHold reports whether any other queue without queues below it holds anything.
func otherQueuesHold(s *cluster.State, queue string) bool {
	return slices.ContainsFunc(s.Queues(), func(q *cluster.Queue) bool { return q.Leaf() && q.Name != queue && len(q.Used) > 0 })
}

func standingText(st *engine.Standing) string {
	text := fmt.Sprintf("Queue %s holds %s; its fair share is %s", st.Queue, quantity.Resource(st.Resource, st.Used), amountOf(st.Resource, st.Share))
	if st.Quota >= 0 {
		text += ", its quota " + amountOf(st.Resource, st.Quota)
	}
	return text + fmt.Sprintf("; with its pending jobs it requests %s.", amountOf(st.Resource, st.Request))
}

// verbs complete "Nothing can be …" and "… could be …".
var verbs = map[engine.Purpose]string{engine.Reclaim: "reclaimed", engine.Preempt: "preempted"}

// evictionLines returns sentences that say why no workload is evicted for it, one for each
// purpose. Moves are left out, because they take nothing from other workloads.
func (c *Entitlement) evictionLines(ph Phrases) []string {
	state := c.State
	var out, idle []string
	for _, p := range c.Purposes {
		verb := verbs[p]
		if verb == "" {
			continue
		}
		x := c.Census[p]
		protected := ph.protectedText(state, p, x.Protected)
		switch {
		case p == engine.Reclaim && (x.NoneAllowed || protected != "") && !otherQueuesHold(state, c.job().Queue):
			out = append(out, "Nothing can be reclaimed: no other queue holds anything.")
		case x.NoneAllowed:
			out = append(out, "Nothing can be "+verb+c.noneAllowedText(p)+".")
		case len(x.Allowed) > 0:
			may := wire.Map(x.Allowed, func(v *engine.Victim) string { return v.Job.ID })
			text := fmt.Sprintf("%s could be %s, but no evictions were found that make enough room", List(may, 3), verb)
			if protected != "" {
				text += "; Berth must not evict " + protected
			}
			out = append(out, text+".")
		case protected != "":
			out = append(out, fmt.Sprintf("Nothing can be %s: Berth must not evict %s.", verb, protected))
		default:
			idle = append(idle, verb)
		}
	}
	if len(idle) > 0 {
		out = append(out, "Nothing can be "+strings.Join(idle, " or ")+": "+c.noVictims()+".")
	}
	return out
}

// noVictims returns why there is no workload that could be evicted.
func (c *Entitlement) noVictims() string {
	firm := 0
	for _, j := range c.State.Jobs() {
		if j.ID != c.Workload && j.Running() && !j.Preemptible {
			firm++
		}
	}
	switch displaced := len(c.job().Displaced); {
	case firm > 0 && displaced == 0:
		return "no other workload that runs is preemptible"
	case displaced > 0:
		return "no other workload that runs is preemptible and was not evicted for it before"
	}
	return "no other workload runs"
}

// noneAllowedText returns why plugins allow no victim at all: the fair share of the workload's
// queue that would be exceeded, if that is known.
func (c *Entitlement) noneAllowedText(p engine.Purpose) string {
	if p == engine.Reclaim && len(c.Lacking) == 0 {
		return " for it: queues divide nothing that it lacks"
	}
	for i := range c.Standings {
		st := &c.Standings[i]
		if with := st.Used + c.Lacking.Of(st.Resource); p == engine.Reclaim && st.Queue == c.Standings[0].Queue && with > st.Share {
			return fmt.Sprintf(": with this workload, queue %s would hold %s, more than its fair share", st.Queue, quantity.Resource(st.Resource, with))
		}
	}
	return " for it"
}
