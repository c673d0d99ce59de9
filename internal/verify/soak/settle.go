package soak

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// settlingRounds is the number of sessions within which a cluster of this size must
// settle. It does settle eventually, because no job is evicted twice for the same job.
const settlingRounds = 60

// Settle runs sessions on a copy of State, to which no job or node is added and from
// which none is removed. It checks that after some sessions no more decisions are made.
func (w *World) Settle() error {
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		return err
	}
	state, now, quiet := w.State.Clone(), w.clock, 0
	options := engine.Options{Patient: w.chance(50)}
	var tail []string
	for round := 1; quiet < 2; round++ {
		now += 3600 * second // longer than any queue protects its tasks
		options.Now = now
		s := e.Open(state, options)
		out, err := s.Run()
		s.Close()
		if err != nil {
			return fmt.Errorf("settling: %w", err)
		}
		moved := len(out.Decisions) > 0 || slices.ContainsFunc(out.Events, func(e engine.Record) bool { return e.Kind == engine.Withdrawn })
		left := endReleasing(state)
		pending := len(state.View().Nominated()) > 0 || slices.ContainsFunc(state.Jobs(), func(j *cluster.Job) bool { return j.Running() && !j.HasMinimum() })
		switch {
		case moved && quiet > 0:
			return fmt.Errorf("the cluster had settled, and then more decisions were made: %s", summary(&out))
		case moved || left || pending:
			tail = append(tail, summary(&out))
		default:
			if quiet++; quiet == 1 {
				w.Settled++
				w.Rounds = max(w.Rounds, round)
			}
		}
		if round > settlingRounds {
			return fmt.Errorf("the cluster has not settled in %d sessions; the last ones:\n%s", settlingRounds, strings.Join(tail[max(0, len(tail)-12):], "\n"))
		}
	}
	for _, name := range state.View().Sets().Names() {
		if jobs := state.View().Sets().Jobs(name); len(jobs) > state.View().Sets().Desired(name) {
			return fmt.Errorf("the cluster has settled, and %s has %d replicas, of which %d are desired", name, len(jobs), state.View().Sets().Desired(name))
		}
	}
	return nil
}

// endReleasing stops all tasks that were evicted, and reports whether there were any.
func endReleasing(state *cluster.State) bool {
	any := false
	for _, j := range state.Jobs() {
		for _, t := range slices.Clone(j.Tasks()) {
			if t.Status != cluster.Releasing {
				continue
			}
			var left cluster.Change = cluster.TaskSeen{Task: t.Ref()}
			if t.Sent() { // it is not known whether it was bound, so that only its end can be reported
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
		case e.Decision != nil && e.Decision.Action == engine.EvictTask:
			parts = append(parts, fmt.Sprintf("%s %s on %s for %s (%s)", e.Kind, e.Task.ID(), e.Decision.Node, e.Decision.For, e.Decision.Reason))
		case e.Decision != nil:
			parts = append(parts, fmt.Sprintf("%s %s on %s", e.Kind, e.Task.ID(), e.Decision.Node))
		case e.Kind == engine.Withdrawn:
			parts = append(parts, fmt.Sprintf("%s %s", e.Kind, e.Task.ID()))
		}
	}
	return strings.Join(parts, ", ")
}

// checkPatience checks that each job that a patient session did not try has a refusal
// from before, and could not have been placed. It checks the latter only if the
// session made no decision, because State is then as it was in the job's turn.
func (w *World) checkPatience(patient bool, out *engine.Outcome) error {
	if !patient {
		return nil
	}
	unchanged := len(out.Decisions) == 0 && !slices.ContainsFunc(out.Events, func(e engine.Record) bool { return e.Kind == engine.Withdrawn })
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
		case refusal == nil && unchanged:
			return fmt.Errorf("%s is pending, and has no refusal", j.ID)
		case !unchanged:
			continue
		}
		if w.Waits++; s == nil {
			e, err := engineWithoutEvictions()
			if err != nil {
				return err
			}
			s = e.Open(w.State.Clone(), engine.Options{Now: w.clock})
		}
		stmt, job := s.Begin(), s.View.Job(j.ID)
		placed := job.Placed()
		s.Place(stmt, job)
		if n := job.Placed(); n > placed {
			return fmt.Errorf("%s was not tried (%s), and there is room for %d of its tasks", job.ID, refusal.Reason, n-placed)
		}
		stmt.Discard()
	}
	return nil
}

// engineWithoutEvictions returns an engine without the plugins that evict.
func engineWithoutEvictions() (*engine.Engine, error) {
	profile := standard.Profile()
	adapters := []string{"Consolidate", "Reclaim", "Preempt"}
	profile = slices.DeleteFunc(profile, func(p engine.PluginConfig) bool { return slices.Contains(adapters, p.Name) })
	return engine.New(standard.Registry(), profile)
}
