package whatif

import (
	"cmp"
	"fmt"
	"math"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// Question asks why a workload is placed where it is, or why it is pending.
type Question struct {
	Engine   *engine.Engine
	State    *cluster.State // Why simulates on it, and leaves it as it is at the end of the simulation
	Workload string         // the ID of a job; or the name of a set, which asks about its first pending replica
	Now      int64          // the time of the sessions, in nanoseconds since 1970
	// Tries is how many changes may be tried; 0 means 64, or fewer if a simulation takes many steps. If no single change helps, 32 more are allowed for changes that are made
	// together. A negative number means that only changes made together are tried. Sessions on
	// small clusters of new nodes, which find out whether an empty node could take the
	// workload, are not counted.
	Tries int
	// Steps is after how many steps of the simulations no more changes are tried, apart from one or
	// two of each kind; 0 means 1,000,000, which take a few seconds. See the function Steps.
	Steps int
	// Objects says how the input is changed. If Objects is nil, only changes that need no field
	// of an object have arguments.
	Objects Objects
	// Knobs returns the settings of the workload that can be tried, such as the context
	// length of a model. If Knobs is nil, no settings are tried.
	Knobs func(id string) []Knob
	// Progress, if not nil, is called before each try.
	Progress func(Progress)
	// Rekey sets the Key of a shape of tasks with the role after a change has edited the shape.
	// If Rekey is nil, an edited shape keeps its Key.
	Rekey func(role string, shape *cluster.Shape)
}

// Progress is how far the search for changes that help is.
type Progress struct {
	Tried    int    // how many changes were tried
	Helped   int    // how many of them help
	Cheapest string // the change that helps and costs least so far, in a few words; "" if there is none
}

// How many changes are tried by default, and after how many steps no more are tried.
const (
	defaultTries = 64
	defaultSteps = 1_000_000
)

// Steps returns how many steps a simulation took, which is about how long it took in units of 3 to 5 µs,
// and does not depend on the machine. Changes is by how much the version of the State grew: sessions
// make and undo many changes while they look for victims.
func Steps(s *sim.Simulation, changes uint64) int {
	return int(min(changes, math.MaxInt32)) + s.Steps + 2*s.Sessions*len(s.State.Pending())
}

// triesFor returns how many changes are tried by default, given the steps of a simulation.
func triesFor(steps int) int {
	const fewest = 24
	return max(fewest, min(defaultTries, defaultSteps/max(1, steps)))
}

// Why answers the question. It leaves the State as it is at the end of the simulation. It
// returns an error if there is no such workload, or if the engine fails.
func Why(q Question) (r *explain.Report, err error) {
	if q.State.Job(q.Workload) == nil && len(q.State.View().Sets().Jobs(q.Workload)) == 0 {
		return nil, fmt.Errorf("no workload %q", q.Workload)
	}
	phrases := explain.PhrasesOf(q.Engine)
	was := recordBefore(q.State, q.Workload)
	defer q.State.Release(was.mark)
	version := q.State.Version()
	simulation, err := sim.Simulate(q.Engine, q.State, sim.Options{Now: q.Now, Record: true})
	if err != nil {
		return nil, err
	}
	base := Steps(simulation, q.State.Version()-version)
	tries := triesFor(base)
	j := workloadOf(simulation, q.Workload, was)
	q.Workload = j.ID
	r = &explain.Report{
		Report: wire.Report{Workload: j.ID, Request: explain.RequestText(j), Remarks: j.Remarks, Set: wire.NewSetReport(q.State, j), Placements: []wire.Placement{}, Nodes: len(q.State.Nodes())},
		Notes:  explain.Notes{Tasks: len(j.Tasks())},
	}
	if alt := &j.Alternatives[max(0, j.Chosen)]; j.Chosen >= 0 && alt.Tasks[0].Shape.ServesModel() {
		r.Form, r.Notes.KeptForm = alt.Name, alt.Running
	}
	if err := addPlacements(r, q, phrases, was, simulation, j); err != nil {
		return nil, err
	}
	for i := range simulation.RetirementOrders {
		if simulation.RetirementOrders[i].Set == j.Set.Name {
			ranking := wire.NewRanking(&simulation.RetirementOrders[i])
			r.Ranking, r.Notes.Retired = &ranking, j.Retired
		}
	}
	refused := simulation.RefusalOf(j.ID)
	if refused == nil {
		return r, nil
	}
	searches := refused.Protected
	if refused, err = fullRefusal(q, refused); err != nil {
		return nil, err
	}
	out := phrases.Refusal(refused, false)
	r.Refusal = &out
	r.AddEarmarks(q.State, j)
	w := &workload{state: q.State, id: j.ID, refusal: refused, attempt: wire.MainAttempt(refused), rekey: q.Rekey}
	l := &lab{engine: q.Engine, state: q.State, workload: w, objects: q.Objects, progress: q.Progress, now: q.Now, budget: max(q.Tries, 0), displaced: map[string]bool{}, laterTime: map[*change]int64{}, alsoEvicted: map[*change][]string{}, cutShort: map[*change]bool{}}
	for _, id := range evicted(simulation.Decisions) {
		l.displaced[id] = true
	}
	if l.isLarge = tries < defaultTries; q.Tries == 0 {
		l.budget = tries
	}
	l.stepBudget = cmp.Or(q.Steps, defaultSteps)
	l.mostSteps = max(1, l.stepBudget/4)
	r.FreeMemory, r.Foreign = explain.FreeMemoryText(q.State, w.shape()), explain.ForeignMemoryText(q.State, w.shape())
	var c *explain.Entitlement
	// For surplus tasks the entitlement is not reported. The engine may evict other tasks for
	// them only if a hook of AddSurplus allows it.
	if !refused.Surplus {
		c = newEntitlement(l, searches)
		r.AddEntitlement(c, phrases)
	}
	l.readCharges()
	// From here on, the State of the question is the one before the simulation, and changes are
	// tried on it. If nothing was decided, the two are the same.
	if len(simulation.Decisions) > 0 {
		w.state = q.State.Clone()
		q.State.Undo(was.mark)
		defer func() {
			if restored := q.State.ApplyAll(simulation.Changes); err == nil {
				err = restored
			}
		}()
	}
	l.counts = q.State.CountsDemand()
	var own map[string]bool
	if w.attempt.Level == "" {
		own = l.ownNodes()
	}
	r.AddFunnel(w.attempt, own, phrases)
	r.AddForms(refused, w.shape(), phrases)
	if r.Nodes > 0 { // a new node is a copy of an existing one
		var knobs []Knob
		if q.Knobs != nil {
			knobs = q.Knobs(q.Workload)
		}
		found := &finder{lab: l, phrases: phrases}
		r.Conflict = found.search(c, knobs)
		if b := found.remaining; b != nil {
			r.Remaining = &wire.RemainingRejection{Plugin: b.Plugin, Reason: b.Reason, Cure: b.Cure.String()}
		}
		r.TriedChanges, r.Trials, r.Untried = l.tries, found.trials(), found.untried
		r.Notes.Steps = 2*base + l.allSteps
	}
	return r, l.err
}

// workloadOf returns the job with the ID. If the ID is that of a set, it returns the first
// replica that was refused, or the first replica if none was. Retired replicas are not in
// their set any more; if all are retired, it returns the first that was in the set before.
func workloadOf(simulation *sim.Simulation, id string, was *stateBefore) *cluster.Job {
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

// fullRefusal returns the refusal with the rejections of all nodes, which a simulation does
// not keep. It tries the job once more, without the other pending jobs that have no placed
// task, because these could not be placed either. If the job is then refused for another reason
// or is placed, it is tried together with all pending jobs, unless there are too many. It
// returns refused itself if neither try gives a refusal for the same reason.
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

// explainedRefusal runs a session that keeps the rejections of all nodes, and undoes it. With
// alone, other pending jobs that have no placed task are removed before. It returns the
// refusal of the job, or nil if the job was refused for another reason or not at all.
func explainedRefusal(q Question, refused *engine.Refusal, alone bool) (*engine.Refusal, error) {
	defer undoAtEnd(q.State)()
	for _, j := range q.State.Pending() {
		if alone && j.ID != q.Workload && j.Placed() == 0 {
			if err := q.State.Apply(cluster.JobGone{Job: j.ID}); err != nil {
				return nil, err
			}
		}
	}
	out, err := sim.Session(q.Engine, q.State, engine.Options{Now: q.Now, Explain: true, LookFurther: true})
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

// ownNodes returns the nodes on which the other tasks of a refused gang would be placed if
// its minimum were the number of tasks that could be placed. Only tasks of the role of the
// refused task are considered, because tasks of other roles request different room.
func (l *lab) ownNodes() map[string]bool {
	w := l.workload
	a, out := w.attempt, map[string]bool{}
	if a.Placed == 0 || w.refusal.Surplus || a.Before != nil {
		return out
	}
	smaller := []*change{{apply: w.withMin(a.Placed)}}
	placed := func(s *cluster.State) {
		for _, t := range s.Job(w.id).Tasks() {
			if t.Node != nil && t.Role == a.Task.Role {
				out[t.Node.Name] = true
			}
		}
	}
	if !l.tryAndRead(placed, smaller...).fits && a.Apart != nil { // the attempt may be one without the limits of queues
		for _, b := range w.bounds() {
			smaller = append(smaller, b.raisedTo(-1))
		}
		l.tryAndRead(placed, smaller...)
	}
	return out
}
