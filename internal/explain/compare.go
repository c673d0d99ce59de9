package explain

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/numeral"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// Compare tells two simulations apart, task by task.
func Compare(ph Phrases, before, after *sim.Simulation) *wire.Difference {
	return compare(ph, endingOf(before), endingOf(after))
}

// WhatIf simulates twice on the same State, without the change and with it, tells
// the two apart, and leaves the State as it was.
func WhatIf(e *engine.Engine, state *cluster.State, o sim.Options, change func(*cluster.State) error) (*wire.Difference, error) {
	before, err := endOf(e, state, o, func(*cluster.State) error { return nil })
	if err != nil {
		return nil, err
	}
	after, err := endOf(e, state, o, change)
	if err != nil {
		return nil, err
	}
	return compare(PhrasesOf(e), before, after), nil
}

// endOf is how a simulation ends after the change; both are undone.
func endOf(e *engine.Engine, state *cluster.State, o sim.Options, change func(*cluster.State) error) (*ending, error) {
	defer undoing(state)()
	if err := change(state); err != nil {
		return nil, err
	}
	simulation, err := sim.Simulate(e, state, o)
	if err != nil {
		return nil, err
	}
	return endingOf(simulation), nil
}

func compare(ph Phrases, before, after *ending) *wire.Difference {
	d := &wire.Difference{
		Placed: []wire.Move{}, Moved: []wire.Move{}, Pending: []wire.Move{}, Gone: []wire.Move{},
		Evicted: leaving(after.simulation, before.simulation), Kept: leaving(before.simulation, after.simulation), Before: before.totals, After: after.totals,
	}
	ids := slices.Collect(maps.Keys(after.tasks))
	for id := range before.tasks {
		if _, both := after.tasks[id]; !both {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		a, was := before.tasks[id]
		b, is := after.tasks[id]
		m := wire.Move{Workload: cmp.Or(b.job, a.job), Task: cmp.Or(b.task, a.task), From: a.node, To: b.node}
		switch {
		case !is && !after.wants[m.Workload]:
			d.Gone = append(d.Gone, m)
		case !is: // it takes another form
			continue
		case a.node == b.node && (was || before.nowhere[m.Workload]): // pending before, in whatever form
			continue
		case a.node == "" && b.node != "":
			d.Placed = append(d.Placed, m)
		case b.node != "":
			d.Moved = append(d.Moved, m)
		default: // it stood, or is new
			if r := after.simulation.RefusalOf(m.Workload); r != nil {
				m.Message = ph.message(r)
			}
			d.Pending = append(d.Pending, m)
		}
	}
	return d
}

// leaving are the tasks that the one simulation evicts and the other does not.
func leaving(simulation, other *sim.Simulation) []wire.Going {
	known := map[string]bool{}
	for i := range other.Decisions {
		if d := &other.Decisions[i]; d.Action == engine.EvictIt {
			known[d.Task.ID()] = true
		}
	}
	out := []wire.Going{}
	for i := range simulation.Decisions {
		d := &simulation.Decisions[i]
		if d.Action == engine.EvictIt && !known[d.Task.ID()] {
			known[d.Task.ID()] = true // it may have to go twice
			out = append(out, wire.Going{Workload: d.Task.Job, Task: d.Task.Name, From: d.Node, For: d.For, Reason: string(d.Reason), Landing: d.Landing})
		}
	}
	return out
}

// ending is how a simulation left the tasks, as values: a State that two
// simulations run on has only one end at a time.
type ending struct {
	simulation *sim.Simulation
	tasks      map[string]standing
	nowhere    map[string]bool // jobs that have no place
	wants      map[string]bool // jobs that are not retired
	totals     wire.Totals
}

type standing struct{ job, task, node string }

func endingOf(s *sim.Simulation) *ending {
	e := &ending{simulation: s, tasks: map[string]standing{}, nowhere: map[string]bool{}, wants: map[string]bool{}}
	for _, j := range s.State.Jobs() {
		e.nowhere[j.ID], e.wants[j.ID] = j.Placed() == 0, !j.Retired
		for _, t := range j.Tasks() {
			at := standing{job: j.ID, task: t.Name}
			switch {
			case t.Node != nil:
				at.node = t.Node.Name
				e.totals.Placed++
			case j.Retired: // it is not requested any more
				continue
			default:
				e.totals.Pending++
			}
			e.tasks[t.ID] = at
		}
	}
	return e
}

// mostMoves is how many tasks of a kind people are shown; one node less can move thousands.
const mostMoves = 40

// WriteDifference writes the difference for people.
func WriteDifference(w io.Writer, d *wire.Difference) {
	list := func(title string, n int, line func(i int) string) {
		if n == 0 {
			return
		}
		fmt.Fprintf(w, "%s:\n", title)
		for i := range min(n, mostMoves) {
			fmt.Fprintf(w, "  %s\n", line(i))
		}
		if more := n - mostMoves; more > 0 {
			fmt.Fprintf(w, "  … and %s; -o json lists all\n", numeral.Count(more, "more task"))
		}
		fmt.Fprintln(w)
	}
	section := func(title string, moves []wire.Move, line func(wire.Move) string) {
		list(title, len(moves), func(i int) string { return moves[i].Workload + " " + moves[i].Task + " " + line(moves[i]) })
	}
	going := func(title string, tasks []wire.Going) {
		list(title, len(tasks), func(i int) string { return goingText(&tasks[i]) })
	}
	section("Newly placed", d.Placed, func(m wire.Move) string { return "→ " + m.To })
	section("Moved", d.Moved, func(m wire.Move) string { return m.From + " → " + m.To })
	told := ""
	section("Newly pending", d.Pending, func(m wire.Move) string {
		text := "(new)"
		if m.From != "" {
			text = "(was on " + m.From + ")"
		}
		if m.Workload != told && m.Message != "" {
			text += "\n    " + strings.TrimSpace(m.Message)
		}
		told = m.Workload
		return text
	})
	section("No longer wanted", d.Gone, func(m wire.Move) string {
		if m.From == "" {
			return "(was pending)"
		}
		return "(was on " + m.From + ")"
	})
	going("Newly evicted", d.Evicted)
	going("No longer evicted", d.Kept)
	if len(d.Placed)+len(d.Moved)+len(d.Pending)+len(d.Evicted)+len(d.Kept)+len(d.Gone) == 0 {
		fmt.Fprint(w, "Nothing changes.\n\n")
	}
	fmt.Fprintf(w, "before: %s\nafter:  %s\n", Tally(d.Before.Placed, d.Before.Pending), Tally(d.After.Placed, d.After.Pending))
}

func goingText(g *wire.Going) string {
	text := g.Workload + " " + g.Task + " from " + g.From
	if g.For != "" {
		text += " for"
	}
	return text + " " + CauseText(g.For, g.Reason, g.Landing)
}

// Tally is the line that sums a simulation up.
func Tally(placed, pending int) string {
	return fmt.Sprintf("%s placed, %d pending", numeral.Count(placed, "task"), pending)
}
