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
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/whatif"
	"github.com/berth-project/berth/internal/wire"
)

// Bounds of the search for what would help all pending workloads. They count steps and not time (see
// whatif.Steps), so that results are the same on every machine.
const (
	mostCures    = 32        // workloads that are not alike
	stepsOfCures = 4_000_000 // with --cures
	stepsUnasked = 300_000   // without --cures
	leastForOne  = 8         // simulations: fewer workloads are asked about if each would get less
)

// cureSteps returns how many workloads can be asked about within the steps, and how many steps the
// changes that are tried for the first of them may take. A simulation of the input takes base steps.
// Asking about a workload needs two simulations before the first change.
func cureSteps(workloads, base, steps int) (most, each int) {
	most = min(workloads, steps/(leastForOne*base))
	return most, max(base, steps/max(1, most)-2*base)
}

// cures says whether simulate looks for what would help pending workloads.
type cures struct {
	wanted, unwanted bool // --cures, and --cures=false
	base             int  // the steps of the simulation of the input; see whatif.Steps
}

// add adds to the result what would help the pending workloads. The simulation must have ended in the
// State of the input. If --cures is not given, add does so if at least two workloads are pending and
// all of them can be asked about within a second or two.
func (c cures) add(in *input, result *wire.Result, on screen) error {
	groups := alikeWorkloads(in.state, result.Refusals)
	base, left := max(1, c.base), stepsOfCures
	if !c.wanted {
		left = stepsUnasked
	}
	asked := min(len(groups), mostCures)
	most, _ := cureSteps(asked, base, left)
	if c.unwanted || len(groups) == 0 || !c.wanted && (len(result.Refusals) < 2 || most < len(groups)) {
		return nil
	}
	if most < len(groups) { // those that most workloads are like are first
		slices.SortStableFunc(groups, func(a, b wire.Cure) int { return cmp.Compare(len(b.Alike), len(a.Alike)) })
	}
	state, err := in.bundle.State() // as it was before the simulation
	if err != nil {
		return err
	}
	q := whatif.Question{Engine: in.engine, State: state, Now: in.now, Knobs: knobs(in.bundle.Plans(), model.NewFleet(state.View().Groups()), nil)}
	if !in.bundle.IsSnapshot() {
		q.Objects = edit.Manifests{Bundle: in.bundle}
	}
	shown := on.start()
	defer shown.end()
	for i := 0; i < asked; i++ {
		g := &groups[i]
		shown.set("what would help: %d of at most %s done", i, english.Count(asked, "pending workload"))
		q.Workload = g.Workload
		_, q.Steps = cureSteps(asked-i, base, left)
		t, took, err := whatif.Cheapest(q)
		if err != nil {
			return err
		}
		if t != nil {
			g.Change, g.Evicts, g.Arguments = t.Brief, t.Evicts, t.Arguments
		}
		if left -= took; left < leastForOne*base {
			asked = i + 1
		}
	}
	result.Cures = groups[:asked]
	for _, g := range groups[asked:] {
		result.WithoutCures = append(append(result.WithoutCures, g.Workload), g.Alike...)
	}
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
