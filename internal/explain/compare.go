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
)

// Difference is who gained and who lost between two simulations.
type Difference struct {
	Placed  []Move `json:"newlyPlaced"`
	Moved   []Move `json:"moved"`
	Pending []Move `json:"newlyPending"`
	// Evicted are tasks that have to go now and did not before, wherever they are
	// placed again; Kept are those that do not have to any more.
	Evicted []Going `json:"newlyEvicted"`
	Kept    []Going `json:"noLongerEvicted"`
	// Gone are tasks that nobody asks for any more.
	Gone   []Move `json:"noLongerWanted"`
	Before Totals `json:"before"`
	After  Totals `json:"after"`
}

// Move is a task that stands elsewhere than before; "" is nowhere.
type Move struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	Message  string `json:"message,omitempty"` // why it is pending now
}

// Going is a task that is evicted.
type Going struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	From     string `json:"from"`
	For      string `json:"for,omitempty"` // the workload that it makes room for
	Reason   string `json:"reason"`
	Landing  string `json:"landing,omitempty"` // the node that it moves to
}

// Totals count tasks, those that ran before included.
type Totals struct {
	Placed  int `json:"placed"`
	Pending int `json:"pending"`
}

// Compare tells two simulations apart, task by task.
func Compare(before, after *Simulation) *Difference { return compare(before.ending(), after.ending()) }

// WhatIf simulates twice on the same State, without the change and with it, tells
// the two apart, and leaves the State as it was.
func WhatIf(e *engine.Engine, state *cluster.State, o Options, change func(*cluster.State) error) (*Difference, error) {
	before, err := endOf(e, state, o, func(*cluster.State) error { return nil })
	if err != nil {
		return nil, err
	}
	after, err := endOf(e, state, o, change)
	if err != nil {
		return nil, err
	}
	return compare(before, after), nil
}

// endOf is how a simulation ends after the change; both are undone.
func endOf(e *engine.Engine, state *cluster.State, o Options, change func(*cluster.State) error) (*ending, error) {
	defer undoing(state)()
	if err := change(state); err != nil {
		return nil, err
	}
	sim, err := Simulate(e, state, o)
	if err != nil {
		return nil, err
	}
	return sim.ending(), nil
}

func compare(before, after *ending) *Difference {
	d := &Difference{
		Placed: []Move{}, Moved: []Move{}, Pending: []Move{}, Gone: []Move{},
		Evicted: leaving(after.sim, before.sim), Kept: leaving(before.sim, after.sim), Before: before.totals, After: after.totals,
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
		m := Move{Workload: cmp.Or(b.job, a.job), Task: cmp.Or(b.task, a.task), From: a.node, To: b.node}
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
			if r := after.sim.refusal(m.Workload); r != nil {
				m.Message = after.sim.Phrases.message(r)
			}
			d.Pending = append(d.Pending, m)
		}
	}
	return d
}

// leaving are the tasks that the one simulation evicts and the other does not.
func leaving(sim, other *Simulation) []Going {
	known := map[string]bool{}
	for i := range other.Decisions {
		if d := &other.Decisions[i]; d.Action == engine.EvictIt {
			known[d.Task.ID()] = true
		}
	}
	out := []Going{}
	for i := range sim.Decisions {
		d := &sim.Decisions[i]
		if d.Action == engine.EvictIt && !known[d.Task.ID()] {
			known[d.Task.ID()] = true // it may have to go twice
			out = append(out, Going{d.Task.Job, d.Task.Name, d.Node, d.For, string(d.Reason), d.Landing})
		}
	}
	return out
}

// ending is how a simulation left the tasks, as values: a State that two
// simulations run on has only one end at a time.
type ending struct {
	sim     *Simulation
	tasks   map[string]standing
	nowhere map[string]bool // jobs that have no place
	wants   map[string]bool // jobs that are not retired
	totals  Totals
}

type standing struct{ job, task, node string }

func (s *Simulation) ending() *ending {
	e := &ending{sim: s, tasks: map[string]standing{}, nowhere: map[string]bool{}, wants: map[string]bool{}}
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

// Text writes the difference for people.
func (d *Difference) Text(w io.Writer) {
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
	section := func(title string, moves []Move, line func(Move) string) {
		list(title, len(moves), func(i int) string { return moves[i].Workload + " " + moves[i].Task + " " + line(moves[i]) })
	}
	going := func(title string, tasks []Going) {
		list(title, len(tasks), func(i int) string { return tasks[i].text() })
	}
	section("Newly placed", d.Placed, func(m Move) string { return "→ " + m.To })
	section("Moved", d.Moved, func(m Move) string { return m.From + " → " + m.To })
	told := ""
	section("Newly pending", d.Pending, func(m Move) string {
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
	section("No longer wanted", d.Gone, func(m Move) string {
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

func (g *Going) text() string {
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
