package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Options of a simulation.
type Options struct {
	Search engine.Search
	// Explain keeps every candidate of every decision, and the rejection of every node in
	// every refusal.
	Explain bool
	Now     int64           // in nanoseconds since 1970
	Timings *engine.Timings // measures how long hooks take; may be nil
	Record  bool            // keep the changes, so that they can be applied again
	// Brief leaves out the session that only lists the nodes in the refusals. Decisions are the
	// same.
	Brief bool
	// Enough, if not nil, is called after each session that decides something. If it returns
	// true, the simulation ends before it is known whether another session decides more.
	Enough func(*Simulation) bool
	// Until is passed to the sessions; see engine.Options.
	Until string
	// Once, if not nil, is the only session that is run. Nothing of what it decides is carried
	// out.
	Once *OneSession
}

// OneSession is a session of a scheduler that is run again.
type OneSession struct {
	Hold  int64    // see engine.Options
	Tried []string // the IDs of the jobs that had a turn in it, in this order
}

// Simulation is what sessions decided until nothing was left to decide.
type Simulation struct {
	State    *cluster.State // as it is after the last session
	Sessions int            // how many sessions were run
	// Outcome has the decisions, events, rankings and recorded changes of all sessions,
	// and the refusals, NextWake and Tried of the last one. A refusal is among the events
	// only if the job was not refused before for the same reason.
	engine.Outcome
}

// maxSessions bounds a simulation in which every session decides something, such as one
// in which two jobs evict each other in turn.
const maxSessions = 100

// ErrUnsettled is the error of a simulation that does not end.
var ErrUnsettled = fmt.Errorf("decisions still change after %d sessions: the plugins of this profile undo each other's work", maxSessions)

// MaxMisses bounds the number of nodes that all refusals of a session list together if
// Options.Explain is not set: pending jobs × nodes. Above it, each refusal lists only the
// nodes that are closest to being feasible.
const MaxMisses = 2_000_000

// Simulate runs sessions over the State, which it changes, until a session decides
// nothing or, with Options.Once, one session. Evicted tasks release their room at once, and are pending again in the next
// session unless they were retired.
func Simulate(e *engine.Engine, state *cluster.State, o Options) (*Simulation, error) {
	sim := &Simulation{State: state}
	if o.Once != nil {
		var err error
		sim.Sessions = 1
		sim.Outcome, err = Session(e, state, engine.Options{Now: o.Now, Hold: o.Once.Hold, Turns: slices.Concat([]string{}, o.Once.Tried), Search: o.Search, Explain: o.Explain, Record: o.Record, Timings: o.Timings})
		return sim, err
	}
	reported := map[string]engine.Reason{} // the last reason among the events, by job
	permanent := map[string]bool{}
	for {
		explainAll := sim.Sessions > 0 && !o.Record && !o.Brief && len(state.Nodes())*len(state.Pending()) <= MaxMisses
		out, err := Session(e, state, engine.Options{Now: o.Now, Search: o.Search, Explain: o.Explain || explainAll, LookFurther: !o.Brief, Until: o.Until, Record: o.Record, Timings: o.Timings})
		if err != nil {
			return nil, err
		}
		sim.Changes = append(sim.Changes, out.Changes...)
		if err := Confirm(state, out.Decisions, sim.apply); err != nil {
			return nil, err
		}
		sim.Sessions++
		sim.Steps += out.Steps
		sim.Decisions = append(sim.Decisions, out.Decisions...)
		sim.RetirementOrders = append(sim.RetirementOrders, out.RetirementOrders...)
		sim.Refusals, sim.Tried, sim.NextWake = out.Refusals, out.Tried, out.NextWake
		for _, r := range out.Refusals {
			// A job that could not fit when fewer jobs were placed cannot fit now, because
			// the nodes are the same. A later session may see less: it knows which tasks
			// hold the room, not whether the job would fit without them.
			permanent[r.Job] = permanent[r.Job] || r.Permanent
			r.Permanent = permanent[r.Job]
		}
		for _, ev := range out.Events {
			if ev.Refusal != nil {
				if reported[ev.Job] == ev.Refusal.Reason {
					continue
				}
				reported[ev.Job] = ev.Refusal.Reason
			}
			sim.Events = append(sim.Events, ev)
		}
		// The refusals of the first session do not list every node. If it decides nothing and
		// refuses a job, one more session is run, which lists every node within MaxMisses.
		if len(out.Decisions) == 0 && (sim.Sessions > 1 || len(out.Refusals) == 0 || o.Explain || o.Brief) {
			return sim, nil
		}
		if o.Record && len(out.Changes) == 1 {
			return sim, nil // the only change is that the session began: one more session would decide nothing either
		}
		if o.Enough != nil && o.Enough(sim) {
			return sim, nil
		}
		if sim.Sessions == maxSessions {
			return nil, ErrUnsettled
		}
		if err := sim.release(out.Decisions); err != nil {
			return nil, err
		}
	}
}

// apply applies a change and records it.
func (s *Simulation) apply(c cluster.Change) error {
	s.Changes = append(s.Changes, c)
	return s.State.Apply(c)
}

// ConfirmBindings reports to State that the tasks that the decisions bind run on their
// nodes, as a kubelet would. Tasks that are not assumed any more are skipped.
func ConfirmBindings(state *cluster.State, decisions []engine.Decision) error {
	return Confirm(state, decisions, state.Apply)
}

// Confirm is ConfirmBindings with a function that makes the changes.
func Confirm(state *cluster.State, decisions []engine.Decision, apply func(cluster.Change) error) error {
	for i := range decisions {
		d := &decisions[i]
		if t := state.Task(d.Task); d.Action == engine.Bind && t != nil && t.Status == cluster.Assumed {
			if err := apply(cluster.TaskSeen{Task: d.Task, Node: d.Node}); err != nil {
				return err
			}
		}
	}
	return nil
}

// release reports that the tasks that the decisions evict have stopped.
func (s *Simulation) release(decisions []engine.Decision) error {
	for i := range decisions {
		if d := &decisions[i]; d.Action == engine.EvictTask {
			if err := reportStopped(s.State, d.Task, s.apply); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReportStopped reports to State that an evicted task has stopped. Its room is free then,
// and the task is pending again unless it was retired. A task that is not releasing is left
// as it is.
func ReportStopped(state *cluster.State, ref cluster.TaskRef) error {
	return reportStopped(state, ref, state.Apply)
}

func reportStopped(state *cluster.State, ref cluster.TaskRef, apply func(cluster.Change) error) error {
	if t := state.Task(ref); t == nil || t.Status != cluster.Releasing {
		return nil
	}
	return apply(cluster.TaskSeen{Task: ref})
}

// Session runs one session over the State, which it changes.
func Session(e *engine.Engine, state *cluster.State, o engine.Options) (engine.Outcome, error) {
	s := e.Open(state, o)
	out, err := s.Run()
	return out, errors.Join(err, s.Close())
}

// RefusalOf returns the refusal of the job in the last session, or nil if it was not refused.
func (s *Simulation) RefusalOf(job string) *engine.Refusal {
	for _, r := range s.Refusals {
		if r.Job == job {
			return r
		}
	}
	return nil
}
