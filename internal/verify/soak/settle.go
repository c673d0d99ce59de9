package soak

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// settlingRounds is how many sessions a world of this size may take until none decides
// anything. Nobody goes twice for the same job, so it ends; this says how soon.
const settlingRounds = 60

// Settle goes on with a copy of the books, with nothing arriving or leaving by
// itself: sooner or later sessions decide nothing, and stay at that.
func (w *World) Settle() error {
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		return err
	}
	state, now, quiet := w.State.Clone(), w.clock, 0
	options := engine.Options{Patient: w.chance(50)}
	var tail []string
	for round := 1; quiet < 2; round++ {
		now += 3600 * second // longer than anybody is protected
		options.Now = now
		s := e.Open(state, options)
		out, err := s.Run()
		s.Close()
		if err != nil {
			return fmt.Errorf("settling: %w", err)
		}
		moved := len(out.Decisions) > 0 || slices.ContainsFunc(out.Events, func(e engine.Record) bool { return e.Kind == engine.Withdrawn })
		left := leave(state)
		pending := len(state.View().Nominated()) > 0 || slices.ContainsFunc(state.Jobs(), func(j *cluster.Job) bool { return j.Running() && !j.HasMinimum() })
		switch {
		case moved && quiet > 0:
			return fmt.Errorf("it had settled, and then decided something: %s", summary(&out))
		case moved || left || pending:
			tail = append(tail, summary(&out))
		default:
			if quiet++; quiet == 1 {
				w.Settled++
				w.Rounds = max(w.Rounds, round)
			}
		}
		if round > settlingRounds {
			return fmt.Errorf("it has not settled in %d sessions; the last:\n%s", settlingRounds, strings.Join(tail[max(0, len(tail)-12):], "\n"))
		}
	}
	for _, name := range state.View().Sets().Names() {
		if jobs := state.View().Sets().Jobs(name); len(jobs) > state.View().Sets().Desired(name) {
			return fmt.Errorf("it has settled, and %s has %d replicas where %d are desired", name, len(jobs), state.View().Sets().Desired(name))
		}
	}
	return nil
}

// leave lets go everybody who was evicted, and says whether anybody was.
func leave(state *cluster.State) bool {
	any := false
	for _, j := range state.Jobs() {
		for _, t := range slices.Clone(j.Tasks()) {
			if t.Status != cluster.Releasing {
				continue
			}
			var left cluster.Change = cluster.TaskSeen{Task: t.Ref()}
			if t.Sent() { // whether it was bound is not known: only its end is
				left = cluster.TaskGone{Task: t.Ref()}
			}
			if state.Apply(left) == nil {
				any = true
			}
		}
	}
	return any
}

func summary(out *engine.Outcome) string {
	var parts []string
	for _, e := range out.Events {
		switch {
		case e.Decision != nil && e.Decision.Action == engine.EvictIt:
			parts = append(parts, fmt.Sprintf("%s %s on %s for %s (%s)", e.Kind, e.Task.ID(), e.Decision.Node, e.Decision.For, e.Decision.Reason))
		case e.Decision != nil:
			parts = append(parts, fmt.Sprintf("%s %s on %s", e.Kind, e.Task.ID(), e.Decision.Node))
		case e.Kind == engine.Withdrawn:
			parts = append(parts, fmt.Sprintf("%s %s", e.Kind, e.Task.ID()))
		}
	}
	return strings.Join(parts, ", ")
}

// checkPatience makes sure that every job that was left waiting was told why, and
// would not have been placed. It tries where the session decided nothing: then
// things stand as they stood when it was the job's turn.
func (w *World) checkPatience(patient bool, out *engine.Outcome) error {
	if !patient {
		return nil
	}
	still := len(out.Decisions) == 0 && !slices.ContainsFunc(out.Events, func(e engine.Record) bool { return e.Kind == engine.Withdrawn })
	tried := map[string]bool{}
	for _, id := range out.Tried {
		tried[id] = true
	}
	var s *engine.Session
	for _, j := range w.State.Pending() {
		refusal := w.engine.Refusal(j)
		switch {
		case tried[j.ID]:
			continue
		case refusal == nil && still:
			return fmt.Errorf("%s waits, and was never told why", j.ID)
		case !still:
			continue
		}
		if w.Waits++; s == nil {
			e, err := plain()
			if err != nil {
				return err
			}
			s = e.Open(w.State.Clone(), engine.Options{Now: w.clock})
		}
		stmt, job := s.Begin(), s.View.Job(j.ID)
		placed := job.Placed()
		s.Place(stmt, job)
		if n := job.Placed(); n > placed {
			return fmt.Errorf("%s was left waiting (%s), and %d of its tasks have room", job.ID, refusal.Reason, n-placed)
		}
		stmt.Discard()
	}
	return nil
}

// plain is an engine that evicts nobody.
func plain() (*engine.Engine, error) {
	profile := standard.Profile()
	adapters := []string{"Consolidate", "Reclaim", "Preempt"}
	profile = slices.DeleteFunc(profile, func(p engine.PluginConfig) bool { return slices.Contains(adapters, p.Name) })
	return engine.New(standard.Registry(), profile)
}
