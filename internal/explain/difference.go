package explain

import (
	"fmt"
	"io"
	"strings"

	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/wire"
)

// mostMoves is how many tasks a section lists. A change can affect thousands of tasks.
const mostMoves = 40

// WriteDifference writes the difference for people.
func WriteDifference(w io.Writer, d *wire.Difference) {
	list := func(title string, n int, line func(i int) string) {
		if n == 0 {
			return
		}
		fmt.Fprintf(w, "%s:\n", title)
		for i := range min(n, mostMoves) {
			indent := "  "
			for part := range strings.SplitSeq(line(i), "\n") {
				wrapped(w, part, indent, "    ")
				indent = "    "
			}
		}
		if more := n - mostMoves; more > 0 {
			fmt.Fprintf(w, "  … and %s; -o json lists all\n", english.Count(more, "more task"))
		}
		fmt.Fprintln(w)
	}
	section := func(title string, moves []wire.Move, line func(wire.Move) string) {
		moves = NaturalOrder(moves, func(m *wire.Move) string { return m.Workload + " " + m.Task })
		list(title, len(moves), func(i int) string { return moves[i].Workload + " " + moves[i].Task + " " + line(moves[i]) })
	}
	evicted := func(title string, tasks []wire.EvictedTask) {
		tasks = NaturalOrder(tasks, func(t *wire.EvictedTask) string { return t.Workload + " " + t.Task })
		list(title, len(tasks), func(i int) string { return evictedTaskText(&tasks[i]) })
	}
	section("Newly placed", d.Placed, func(m wire.Move) string { return "→ " + m.To })
	section("Moved", d.Moved, func(m wire.Move) string { return m.From + " → " + m.To })
	last := ""
	section("Newly pending", d.Pending, func(m wire.Move) string {
		text := "(new)"
		if m.From != "" {
			text = "(was on " + m.From + ")"
		}
		if m.Workload != last && m.Message != "" {
			text += "\n" + strings.TrimSpace(m.Message)
		}
		last = m.Workload
		return text
	})
	section("Not requested any more", d.NoLongerRequested, func(m wire.Move) string {
		if m.From == "" {
			return "(was pending)"
		}
		return "(was on " + m.From + ")"
	})
	evicted("Newly evicted", d.Evicted)
	evicted("No longer evicted", d.NoLongerEvicted)
	if len(d.Placed)+len(d.Moved)+len(d.Pending)+len(d.Evicted)+len(d.NoLongerEvicted)+len(d.NoLongerRequested) == 0 {
		fmt.Fprint(w, "Nothing changes.\n\n")
	}
	fmt.Fprintf(w, "before: %s\nafter:  %s\n", TotalsText(d.Before.Placed, d.Before.Pending), TotalsText(d.After.Placed, d.After.Pending))
}

func evictedTaskText(g *wire.EvictedTask) string {
	text := g.Workload + " " + g.Task + " from " + g.From
	if g.For != "" {
		text += " for"
	}
	return text + " " + CauseText(g.For, g.Reason, g.Landing)
}

// TotalsText returns "3 tasks placed, 1 pending".
func TotalsText(placed, pending int) string {
	return fmt.Sprintf("%s placed, %d pending", english.Count(placed, "task"), pending)
}
