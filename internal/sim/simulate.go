package sim

import (
	"errors"
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Options are what a simulation gets from outside.
type Options struct {
	Search engine.Search
	// Explain keeps every candidate of every decision and every miss of every refusal.
	Explain bool
	Now     int64
	Timings *engine.Timings // measures how long hooks take; may be nil

	Record bool // keep the changes, so that they can be made again
}

// Simulation is what became of the pending jobs once nothing changes any more.
type Simulation struct {
	State    *cluster.State // as it is after the last session
	Sessions int            // how many sessions were run
	// Outcome has the decisions, events, rankings and recorded changes of all sessions,
	// and the refusals, NextWake and tried jobs of the last one. A refusal is among the
	// events again only if its reason has changed.
	engine.Outcome
}

// maxSessions ends a simulation whose plugins never come to rest, such as two
// jobs that evict each other for ever.
const maxSessions = 100

// MaxMisses is how many nodes refusals may list between them unless everything
// is to be explained; sentences get shorter beyond it, never wrong.
const MaxMisses = 2_000_000

// Simulate runs sessions over the state, which it changes, until nothing is
// decided any more. What is evicted leaves at once and is pending again in the
// next session, unless it was retired.
func Simulate(e *engine.Engine, state *cluster.State, o Options) (*Simulation, error) {
	sim := &Simulation{State: state}
	told := map[string]engine.Reason{}
	never := map[string]bool{}
	for {
		nodes, pending := len(state.Nodes()), len(state.Pending())
		quiet := sim.Sessions > 0 && nodes*pending <= MaxMisses && !o.Record
		out, err := Session(e, state, engine.Options{Now: o.Now, Search: o.Search, Explain: o.Explain || quiet, Record: o.Record, Timings: o.Timings})
		if err != nil {
			return nil, err
		}
		sim.Changes = append(sim.Changes, out.Changes...)
		if err := settle(state, out.Decisions, sim.apply); err != nil {
			return nil, err
		}
		sim.Sessions++
		sim.Decisions = append(sim.Decisions, out.Decisions...)
		sim.Rankings = append(sim.Rankings, out.Rankings...)
		sim.Refusals, sim.Tried, sim.NextWake = out.Refusals, out.Tried, out.NextWake
		for _, r := range out.Refusals {
			// What could not fit when fewer were placed cannot now: the machines are
			// the same, and a session sees only who holds room, not what it takes.
			never[r.Job] = never[r.Job] || r.Permanent
			r.Permanent = never[r.Job]
		}
		for _, ev := range out.Events {
			if ev.Refusal != nil {
				if told[ev.Job] == ev.Refusal.Reason {
					continue
				}
				told[ev.Job] = ev.Refusal.Reason
			}
			sim.Events = append(sim.Events, ev)
		}
		// The first session does not list every miss; one more, which decides
		// nothing, does. Without refusals there is nothing to list.
		if len(out.Decisions) == 0 && (sim.Sessions > 1 || len(out.Refusals) == 0 || o.Explain) {
			return sim, nil
		}
		if o.Record && len(out.Changes) == 1 {
			return sim, nil // the session changed nothing, and one more would change nothing either
		}
		if sim.Sessions == maxSessions {
			return nil, fmt.Errorf("decisions still change after %d sessions: the plugins of this profile undo each other's work", maxSessions)
		}
		if err := sim.release(out.Decisions); err != nil {
			return nil, err
		}
	}
}

// apply makes a change and keeps it.
func (s *Simulation) apply(c cluster.Change) error {
	s.Changes = append(s.Changes, c)
	return s.State.Apply(c)
}

// Settle has happen at once what a session decided: assigned tasks are seen on
// their nodes.
func Settle(state *cluster.State, decisions []engine.Decision) error {
	return settle(state, decisions, state.Apply)
}

func settle(state *cluster.State, decisions []engine.Decision, apply func(cluster.Change) error) error {
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

// release has evicted tasks leave.
func (s *Simulation) release(decisions []engine.Decision) error {
	for i := range decisions {
		if d := &decisions[i]; d.Action == engine.EvictIt {
			if err := leave(s.State, d.Task, s.apply); err != nil {
				return err
			}
		}
	}
	return nil
}

// Leave has an evicted task leave its node: its room is free, and unless it was
// retired it is pending again.
func Leave(state *cluster.State, ref cluster.TaskRef) error { return leave(state, ref, state.Apply) }

func leave(state *cluster.State, ref cluster.TaskRef, apply func(cluster.Change) error) error {
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

// RefusalOf is the refusal of a job in the last session; nil: it has none.
func (s *Simulation) RefusalOf(job string) *engine.Refusal {
	for _, r := range s.Refusals {
		if r.Job == job {
			return r
		}
	}
	return nil
}
