package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/edit"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/whatif"
	"github.com/berth-project/berth/internal/wire"
)

// Bounds of the search for what would help all pending workloads. They count sessions and not
// time, so that results are the same on every machine.
const (
	mostCures      = 32  // workloads that are not alike
	mostTriesEach  = 64  // changes that are tried for one of them
	leastTriesEach = 12  // fewer workloads are asked about if each would get fewer tries
	mostCureTries  = 640 // changes that are tried for all of them together
	// A try takes longer if more workloads are pending. From manyPending on, there are fewer tries,
	// but not fewer than leastCureTries.
	manyPending    = 500
	leastCureTries = 96
)

// cureTries returns how many workloads are asked about, of those that are not alike, and how many
// changes are tried for each.
func cureTries(workloads, pending int) (most, each int) {
	all := max(leastCureTries, min(mostCureTries, mostCureTries*manyPending/max(1, pending)))
	most = min(workloads, mostCures, all/leastTriesEach)
	return most, min(mostTriesEach, all/max(1, most))
}

// addCures adds to the result what would help the pending workloads. The simulation must have
// ended in the State of the input.
func addCures(in *input, result *wire.Result, on screen) error {
	groups := alikeWorkloads(in.state, result.Refusals)
	most, tries := cureTries(len(groups), len(result.Refusals))
	if len(groups) > most { // those that most workloads are like
		slices.SortStableFunc(groups, func(a, b wire.Cure) int { return cmp.Compare(len(b.Alike), len(a.Alike)) })
	}
	for _, g := range groups[most:] {
		result.WithoutCures = append(append(result.WithoutCures, g.Workload), g.Alike...)
	}
	groups = groups[:most]
	state, err := in.bundle.State() // as it was before the simulation
	if err != nil {
		return err
	}
	q := whatif.Question{Engine: in.engine, State: state, Now: in.now, Knobs: knobs(in.bundle.Plans(), state), Tries: tries}
	if !in.bundle.IsSnapshot() {
		q.Objects = edit.Manifests{Bundle: in.bundle}
	}
	shown := on.start()
	defer shown.end()
	for i := range groups {
		g := &groups[i]
		shown.set("what would help: %d of %s done", i, english.Count(len(groups), "pending workload"))
		q.Workload = g.Workload
		t, err := whatif.Cheapest(q)
		if err != nil {
			return err
		}
		if t != nil {
			g.Change, g.Evicts, g.Arguments = t.Brief, t.Evicts, t.Arguments
		}
	}
	result.Cures = groups
	return nil
}

// alikeWorkloads returns an entry for each set of refused workloads that are alike: they are of one
// queue, request the same, and are refused for the same reason. Workloads for which nodes are going
// to be made are left out.
func alikeWorkloads(s *cluster.State, refusals []wire.Refusal) []wire.Cure {
	var out []wire.Cure
	known := map[string]int{}
	for i := range refusals {
		r := &refusals[i]
		j := s.Job(r.Workload)
		if j == nil || r.AwaitedNodes > 0 {
			continue
		}
		key := fmt.Sprintf("%s %t %s %s %s %d %t %d %v", r.Reason, r.Surplus, j.Queue, j.Namespace, j.Set.Name, j.Priority, j.Preemptible, j.PreemptionDelay, j.Labels)
		for a := range j.Alternatives {
			alt := &j.Alternatives[a]
			key += fmt.Sprintf("|%d %d %v %+v %d", alt.Min, len(alt.Tasks), alt.Topology, alt.Subgroups, alt.MinSubgroups)
			for k, t := range alt.Tasks {
				if k == 0 || t.Shape != alt.Tasks[k-1].Shape || t.Role != alt.Tasks[k-1].Role || t.Subgroup != alt.Tasks[k-1].Subgroup {
					key += fmt.Sprintf(" %d:%p %q %d", k, t.Shape, t.Role, t.Subgroup) // equal requests share one shape
				}
			}
		}
		if at, found := known[key]; found && len(j.Affinity) == 0 {
			out[at].Alike = append(out[at].Alike, r.Workload)
			continue
		}
		known[key] = len(out)
		out = append(out, wire.Cure{Workload: r.Workload})
	}
	return out
}

// cures prints what would help pending workloads.
func (t *table) cures(result *wire.Result, paths string) {
	fmt.Fprintln(t.w, "\nWhat would help (each change was tried):")
	rows := [][]string{{"WORKLOAD", "CHANGE"}}
	for i := range result.Cures {
		c := &result.Cures[i]
		name, change := c.Workload, c.Change
		if n := len(c.Alike); n > 0 {
			name += fmt.Sprintf(" and %d alike", n)
		}
		if change == "" {
			change = "nothing that was tried"
		}
		if len(c.Evicts) > 0 {
			change += fmt.Sprintf(" (evicts %s)", explain.List(c.Evicts, 2))
		}
		rows = append(rows, []string{name, change})
	}
	const indent = "  "
	var text strings.Builder
	fitGrid(&text, wrapLast(rows, t.style.Width-len(indent)), t.style.Width-len(indent), 0)
	for line := range strings.Lines(text.String()) {
		fmt.Fprint(t.w, indent+line)
	}
	if n := len(result.WithoutCures); n > 0 {
		explain.Wrap(t.w, fmt.Sprintf("Not looked for: what would help %s (%s).", english.Count(n, "more workload"), explain.List(result.WithoutCures, 3)), "  ", "  ", t.style.Width)
	}
	fmt.Fprintf(t.w, "  More: berth why %s %s\n\n", result.Cures[0].Workload, paths)
}
