package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Difference is who gained and who lost between two simulations.
type Difference struct {
	Placed  []Move `json:"newlyPlaced"`
	Moved   []Move `json:"moved"`
	Pending []Move `json:"newlyPending"`
	Before  Totals `json:"before"`
	After   Totals `json:"after"`
}

// Move is a task that stands elsewhere than before; "" is nowhere.
type Move struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	Message  string `json:"message,omitempty"` // why it is pending now
}

// Totals count tasks, those that ran before included.
type Totals struct {
	Placed  int `json:"placed"`
	Pending int `json:"pending"`
}

// Compare tells two simulations apart, task by task.
func Compare(before, after *Simulation) *Difference {
	d := &Difference{Placed: []Move{}, Moved: []Move{}, Pending: []Move{}}
	was, is := standings(before.State, &d.Before), standings(after.State, &d.After)
	names := map[string]bool{}
	for id := range was {
		names[id] = true
	}
	for id := range is {
		names[id] = true
	}
	var ids []string
	for id := range names {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		a, b := was[id], is[id]
		t := cmp.Or(b.task, a.task)
		m := Move{Workload: t.Job.ID, Task: t.Name, From: a.node, To: b.node}
		switch {
		case a.node == b.node:
			continue
		case a.node == "":
			d.Placed = append(d.Placed, m)
		case b.node != "":
			d.Moved = append(d.Moved, m)
		case b.task != nil: // a task that is no longer asked for is no loss
			if r := after.refusal(m.Workload); r != nil {
				m.Message = Message(r)
			}
			d.Pending = append(d.Pending, m)
		}
	}
	return d
}

type standing struct {
	task *cluster.Task
	node string
}

func standings(s *cluster.State, totals *Totals) map[string]standing {
	out := map[string]standing{}
	for _, j := range s.Jobs() {
		for _, t := range j.Tasks() {
			at := standing{task: t}
			if t.Node != nil {
				at.node = t.Node.Name
				totals.Placed++
			} else {
				totals.Pending++
			}
			out[t.ID] = at
		}
	}
	return out
}

// mostMoves is how many tasks of a kind people are shown; one node less can move thousands.
const mostMoves = 40

// Text writes the difference for people.
func (d *Difference) Text(w io.Writer) {
	section := func(title string, moves []Move, line func(Move) string) {
		if len(moves) == 0 {
			return
		}
		fmt.Fprintf(w, "%s:\n", title)
		for _, m := range moves[:min(len(moves), mostMoves)] {
			fmt.Fprintf(w, "  %s %s %s\n", m.Workload, m.Task, line(m))
		}
		if more := len(moves) - mostMoves; more > 0 {
			fmt.Fprintf(w, "  … and %s; -o json lists all\n", count(more, "more task"))
		}
		fmt.Fprintln(w)
	}
	section("Newly placed", d.Placed, func(m Move) string { return "→ " + m.To })
	section("Moved", d.Moved, func(m Move) string { return m.From + " → " + m.To })
	told := ""
	section("Newly pending", d.Pending, func(m Move) string {
		text := "(was on " + m.From + ")"
		if m.Workload != told && m.Message != "" {
			text += "\n    " + strings.TrimSpace(m.Message)
		}
		told = m.Workload
		return text
	})
	if len(d.Placed)+len(d.Moved)+len(d.Pending) == 0 {
		fmt.Fprint(w, "Nothing changes.\n\n")
	}
	fmt.Fprintf(w, "before: %s\nafter:  %s\n", Tally(d.Before.Placed, d.Before.Pending), Tally(d.After.Placed, d.After.Pending))
}

// Tally is the line that sums a simulation up.
func Tally(placed, pending int) string {
	return fmt.Sprintf("%s placed, %d pending", count(placed, "task"), pending)
}
