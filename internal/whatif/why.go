package whatif

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// Question asks why a workload is where it is, or is pending.
type Question struct {
	Engine   *engine.Engine
	State    *cluster.State // Why simulates on it and leaves it as it is at the end of the simulation
	Workload string         // its ID, or the name of a set: then its first pending replica
	Now      int64
	// Tries is how many sessions may be run to try changes; 0 means 64, or fewer if more
	// than 500 workloads are pending. If no single change helps, 32 more are allowed for
	// changes that are made together. Sessions on small clusters of new nodes, which find
	// out whether a node could take the workload at all, are not counted.
	Tries int
	// Knobs returns the settings of a workload that can be tried, such as those of a model;
	// nil: there are none.
	Knobs func(id string) []Knob
}

const defaultTries = 64

// affordable is how many changes are tried if so many workloads are pending. Each try is a
// session in which all of them compete, so that it takes longer the more there are.
func affordable(pending int) int {
	const many, fewest = 500, 12
	return max(fewest, min(defaultTries, defaultTries*many/max(1, pending)))
}

// Why answers the question. It leaves the State as it is at the end of the simulation.
func Why(q Question) (*explain.Report, error) {
	if q.State.Job(q.Workload) == nil && len(q.State.View().Sets().Jobs(q.Workload)) == 0 {
		return nil, fmt.Errorf("no workload %q", q.Workload)
	}
	phrases := explain.PhrasesOf(q.Engine)
	was := remember(q.State, q.Workload)
	defer q.State.Release(was.mark)
	simulation, err := sim.Simulate(q.Engine, q.State, sim.Options{Now: q.Now, Record: true})
	if err != nil {
		return nil, err
	}
	j := workloadOf(simulation, q.Workload, was)
	q.Workload = j.ID
	r := &explain.Report{
		Report: wire.Report{Workload: j.ID, Wants: explain.Wants(j), Remarks: j.Remarks, Set: wire.NewSetReport(q.State, j), Placements: []wire.Placement{}, Nodes: len(q.State.Nodes())},
		Notes:  explain.Notes{Tasks: len(j.Tasks())},
	}
	if alt := &j.Alternatives[max(0, j.Chosen)]; j.Chosen >= 0 && alt.Tasks[0].Shape.ServesModel() {
		r.Form, r.Notes.Kept = alt.Name, alt.Running
	}
	if err := addPlacements(r, q, phrases, was, simulation, j); err != nil {
		return nil, err
	}
	for i := range simulation.Rankings {
		if simulation.Rankings[i].Set == j.Set.Name {
			ranking := wire.NewRanking(&simulation.Rankings[i])
			r.Ranking, r.Notes.Retired = &ranking, j.Retired
		}
	}
	refused := simulation.RefusalOf(j.ID)
	if refused == nil {
		return r, nil
	}
	sought := refused.Spared
	if refused, err = fullRefusal(q, refused); err != nil {
		return nil, err
	}
	out := phrases.Refusal(refused, false)
	r.Refusal = &out
	w := &workload{q.State, j.ID, refused, wire.MainAttempt(refused)}
	l := &lab{engine: q.Engine, workload: w, now: q.Now, budget: max(q.Tries, 0), at: map[*change]int64{}, evicted: map[*change][]string{}}
	if q.Tries == 0 {
		l.budget = affordable(len(q.State.Pending()))
	}
	r.Offer, r.Foreign = explain.Offer(q.State, w.shape()), explain.Foreign(q.State, w.shape())
	var c *explain.Entitlement
	if !refused.Surplus { // nothing is evicted for surplus
		c = newEntitlement(l, sought)
		r.AddEntitlement(c, phrases)
	}
	var own map[string]bool
	if w.attempt.Level == "" {
		own = l.ownNodes()
	}
	r.AddFunnel(w.attempt, own, phrases)
	r.AddForms(refused, w.shape(), phrases)
	if r.Nodes > 0 { // without nodes there is no sort of node of which more could be added
		var knobs []Knob
		if q.Knobs != nil {
			knobs = q.Knobs(q.Workload)
		}
		found := &finder{lab: l, phrases: phrases}
		r.Conflict = found.seek(c, knobs)
		if b := found.beyond; b != nil {
			r.Beyond = &wire.Beyond{Plugin: b.Plugin, Reason: b.Reason, Cure: b.Cure.String()}
		}
		r.Tried, r.Trials = l.tries, found.trials()
	}
	return r, l.err
}

// workloadOf is the workload with the ID, or of a set the first replica that is pending.
// Retired replicas are not in their set any more: if all are retired, it is the first of
// those that were in the set before.
func workloadOf(simulation *sim.Simulation, id string, was *origin) *cluster.Job {
	if j := simulation.State.Job(id); j != nil {
		return j
	}
	set := simulation.State.View().Sets().Jobs(id)
	for _, j := range set {
		if simulation.RefusalOf(j.ID) != nil {
			return j
		}
	}
	if len(set) == 0 {
		return simulation.State.Job(was.jobs[0])
	}
	return set[0]
}

// fullRefusal is the refusal with the rejections of all nodes, which a simulation does not
// keep. The other pending jobs could not be placed either, so the job is tried without
// them. If it is then refused for another reason or not at all, it is tried among them,
// unless there are too many.
func fullRefusal(q Question, refused *engine.Refusal) (*engine.Refusal, error) {
	full, err := explainedRefusal(q, refused, true)
	if full == nil && err == nil && len(q.State.Nodes())*len(q.State.Pending()) <= sim.MaxMisses {
		full, err = explainedRefusal(q, refused, false)
	}
	if full == nil || err != nil {
		return refused, err
	}
	full.Permanent = refused.Permanent
	return full, nil
}

// explainedRefusal runs a session that explains everything, and undoes it. It returns the
// refusal of the job; nil: it was refused for another reason or not at all.
func explainedRefusal(q Question, refused *engine.Refusal, alone bool) (*engine.Refusal, error) {
	defer undoing(q.State)()
	for _, j := range q.State.Pending() {
		if alone && j.ID != q.Workload && j.Placed() == 0 {
			if err := q.State.Apply(cluster.JobGone{Job: j.ID}); err != nil {
				return nil, err
			}
		}
	}
	out, err := sim.Session(q.Engine, q.State, engine.Options{Now: q.Now, Explain: true})
	if err != nil {
		return nil, err
	}
	for _, r := range out.Refusals {
		if r.Job == q.Workload && r.Reason == refused.Reason && r.Surplus == refused.Surplus {
			return r, nil
		}
	}
	return nil, nil
}

// ownNodes are the nodes that the tasks of the same role would take that could be placed.
// Tasks of other roles request other room and are left out.
func (l *lab) ownNodes() map[string]bool {
	w := l.workload
	a, out := w.attempt, map[string]bool{}
	if a.Placed == 0 || w.refusal.Surplus || a.Before != nil {
		return out
	}
	l.tryAnd(func(s *cluster.State) {
		for _, t := range s.Job(w.id).Tasks() {
			if t.Node != nil && t.Role == a.Task.Role {
				out[t.Node.Name] = true
			}
		}
	}, &change{apply: w.withMin(a.Placed)})
	return out
}
