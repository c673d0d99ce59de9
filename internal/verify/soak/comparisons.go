package soak

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// comparisons has the steps that run sessions on copies of State, or replay the log,
// and compare the results. They change nothing.
type comparisons struct {
	dice      *dice
	site      *site
	scheduler *scheduler
	counts    *Counts
}

// replayLog audits State, and checks that its log gives an equal State.
func (c *comparisons) replayLog() error {
	if err := c.scheduler.state.Audit(); err != nil {
		return err
	}
	again, err := c.scheduler.replayLog()
	if err != nil {
		return err
	}
	c.counts.Replays++
	if again.Digest() != c.scheduler.state.Digest() {
		return fmt.Errorf("the log gives a different State:\n%s", cluster.Difference(again.Lines(), c.scheduler.state.Lines()))
	}
	return nil
}

// compareIndexAndScan runs a session on two copies of State, one with the index and
// one with the scan, and compares the results. A session with engine.Twin compares the
// two for each task; this also compares what the index reports about whole domains.
func (c *comparisons) compareIndexAndScan() error {
	indexed, err := c.resultOf(engine.Indexed)
	if err != nil {
		return err
	}
	scanned, err := c.resultOf(engine.Scan)
	if err != nil {
		return err
	}
	if scanned != indexed {
		return fmt.Errorf("index and scan have different results:\n%s\nand\n%s", indexed, scanned)
	}
	return nil
}

// resultOf runs a session on a copy of State, and returns the copy and the refusals as
// text.
func (c *comparisons) resultOf(search engine.Search) (string, error) {
	e, err := c.scheduler.newEngine()
	if err != nil {
		return "", err
	}
	state := c.scheduler.state.Clone()
	out, err := runSession(e, state, engine.Options{Now: c.site.now, Search: search})
	if err != nil {
		return "", err
	}
	result := dump(state) + fmt.Sprint(out.RetirementOrders == nil)
	for _, r := range out.Refusals {
		result += fmt.Sprintf("refused %s %s permanent=%v surplus=%v\n", r.Job, r.Reason, r.Permanent, r.Surplus)
		for _, a := range r.Attempts {
			result += fmt.Sprintf("  %s %s %d/%d %v %v\n", a.Task.ID(), a.Subgroup, a.Placed, a.Min, a.Domains, a.Counts)
		}
	}
	return result, nil
}

// maxSettlingRounds is the number of sessions within which a cluster of this size must
// settle. Every cluster settles eventually, because no job is evicted twice for the
// same job.
const maxSettlingRounds = 60

// checkSettling runs sessions on a copy of State, to which no job or node is added and
// from which none is removed. It checks that the cluster settles: after some sessions,
// no more decisions are made.
func (c *comparisons) checkSettling() error {
	e, err := c.scheduler.newEngine()
	if err != nil {
		return err
	}
	state, now, idleRounds := c.scheduler.state.Clone(), c.site.now, 0
	options := engine.Options{Patient: c.dice.chance(50)}
	var summaries []string
	for round := 1; idleRounds < 2; round++ {
		now += 3600 * second // longer than any queue protects its tasks
		options.Now = now
		out, err := runSession(e, state, options)
		if err != nil {
			return fmt.Errorf("settling: %w", err)
		}
		changed := !decidesNothing(&out)
		stopped := stopReleasing(state)
		switch {
		case changed && idleRounds > 0:
			return fmt.Errorf("the cluster had settled, and then more decisions were made: %s", summary(&out))
		case changed || stopped || isUnfinished(state):
			summaries = append(summaries, summary(&out))
		default:
			if idleRounds++; idleRounds == 1 {
				c.counts.Settled++
				c.counts.MaxRounds = max(c.counts.MaxRounds, round)
			}
		}
		if round > maxSettlingRounds {
			return fmt.Errorf("the cluster has not settled in %d sessions; the last ones:\n%s", maxSettlingRounds, strings.Join(summaries[max(0, len(summaries)-12):], "\n"))
		}
	}
	sets := state.View().Sets()
	for _, name := range sets.Names() {
		if jobs := sets.Jobs(name); len(jobs) > sets.Desired(name) {
			return fmt.Errorf("the cluster has settled, and %s has %d replicas, of which %d are desired", name, len(jobs), sets.Desired(name))
		}
	}
	return nil
}

// isUnfinished reports whether there is a reservation, which becomes a binding, or a
// gang below its minimum, which is completed or evicted.
func isUnfinished(state *cluster.State) bool {
	return len(state.View().Nominated()) > 0 || slices.ContainsFunc(state.Jobs(), func(j *cluster.Job) bool { return j.Running() && !j.HasMinimum() })
}

// stopReleasing stops all tasks that were evicted, and reports whether there were any.
func stopReleasing(state *cluster.State) bool {
	stopped := false
	for _, j := range state.Jobs() {
		for _, t := range slices.Clone(j.Tasks()) {
			if t.Status != cluster.Releasing {
				continue
			}
			var stop cluster.Change = cluster.TaskSeen{Task: t.Ref()}
			if t.Sent() { // it is not known whether it was bound, so that only its end can be reported
				stop = cluster.TaskGone{Task: t.Ref()}
			}
			if state.Apply(stop) == nil {
				stopped = true
			}
		}
	}
	return stopped
}

// summary returns the decisions and withdrawals of a session in one line.
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
