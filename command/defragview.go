package command

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/defrag"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// defragView prints a plan.
type defragView struct {
	engine  *engine.Engine
	state   *cluster.State // after the plan
	plan    *defrag.Plan
	options defrag.Options
}

// result converts the plan.
func (v *defragView) result() *wire.Defrag {
	p := v.plan
	out := &wire.Defrag{
		Goal: string(v.options.Goal), For: v.options.Job, Moves: []wire.DefragMove{}, Fits: []wire.DefragFit{}, Refused: []wire.DefragRefusal{}, Stays: []wire.DefragStay{},
		Before: sumsOf(p.Before), After: sumsOf(p.After), Tasks: p.Tasks, Steps: p.Steps, Bounded: p.Bounded,
	}
	for i := range p.Moves {
		m := &p.Moves[i]
		move := wire.DefragMove{
			Workload: m.Task.Job, Task: m.Task.Name, From: m.From, FromDevices: wire.NewDevices(v.state.Node(m.From), m.FromClaims),
			To: m.To, Devices: wire.NewDevices(v.state.Node(m.To), m.Claims), For: m.For, After: sumsOf(m.After),
		}
		if m.Ran > 0 {
			move.Ran = quantity.Span(m.Ran)
		}
		out.Moves = append(out.Moves, move)
	}
	for _, s := range p.Starts {
		out.Fits = append(out.Fits, wire.DefragFit{Workload: s.Job, AfterMoves: s.After})
	}
	phrases := explain.PhrasesOf(v.engine)
	results := explain.Results{Phrases: phrases, State: v.state}
	for i := range p.Refused {
		r := &p.Refused[i]
		refusal := results.Of(&engine.Outcome{Refusals: []*engine.Refusal{r.Refusal}}, false).Refusals[0]
		out.Refused = append(out.Refused, wire.DefragRefusal{Workload: r.Job, Alike: r.Alike, Reason: refusal.Reason, Message: strings.TrimSpace(refusal.Message) + "; " + v.whyNoMoves(r)})
	}
	for _, s := range p.Stays {
		message := "no other node can take it"
		if s.Reason != defrag.NoOtherPlace {
			message = phrases[s.Reason].Phrase
		}
		out.Stays = append(out.Stays, wire.DefragStay{Reason: string(s.Reason), Message: message, Tasks: s.Tasks, First: s.First.Job + " " + s.First.Name})
	}
	return out
}

// whyNoMoves says why moves do not make room for the job.
func (v *defragView) whyNoMoves(r *defrag.Refused) string {
	switch {
	case r.Moves > 0:
		return fmt.Sprintf("%s would make room, and --max-moves %d leaves %d", english.Count(r.Moves, "move"), v.options.MostMoves, v.options.MostMoves-len(v.plan.Moves))
	case r.Unordered:
		return "moves would make room, but not one after the other: each would need the room of another"
	}
	return "no moves were found that make room"
}

func sumsOf(s defrag.Sums) wire.DefragSums {
	return wire.DefragSums{FreeDevices: s.FreeDevices, FreeNodes: s.FreeNodes, Pending: s.Pending, Unusable: float64(s.Unusable) / float64(cluster.Whole)}
}

// print prints the plan for people.
func (v *defragView) print(w io.Writer, d *wire.Defrag, wide bool) {
	width := columns()
	if len(d.Moves) > 0 {
		rows := v.rows(d)
		if wide {
			grid(w, rows)
		} else {
			fitGrid(w, rows, width, 1, 2, 3, 5)
		}
		fmt.Fprintln(w)
	}
	for _, f := range d.Fits {
		text := f.Workload + " fits without a move"
		if f.AfterMoves > 0 {
			text = fmt.Sprintf("%s fits after move %d", f.Workload, f.AfterMoves)
		}
		explain.Wrap(w, text, "", "  ", width)
	}
	for _, r := range d.Refused {
		names := append([]string{r.Workload}, r.Alike...)
		explain.Wrap(w, fmt.Sprintf("%s %s pending: %s", explain.List(names, 3), isOrAre(len(names)), r.Reason), "", "  ", width)
		explain.Wrap(w, r.Message, "  ", "  ", width)
	}
	if len(d.Stays) > 0 {
		fmt.Fprintln(w, "Tasks that stay:")
		for _, s := range d.Stays {
			explain.Wrap(w, fmt.Sprintf("%s: %s (such as %s)", english.Thousands(s.Tasks), s.Message, s.First), "  ", "    ", width)
		}
	}
	if len(d.Fits)+len(d.Refused)+len(d.Stays) > 0 {
		fmt.Fprintln(w)
	}
	explain.Wrap(w, fmt.Sprintf("%s of %s", english.Count(len(d.Moves), "move"), english.Count(d.Tasks, "running task")), "", "  ", width)
	if d.Bounded {
		explain.Wrap(w, fmt.Sprintf("The search ended after %s steps, so that more may be gained.", english.Thousands(d.Steps)), "", "  ", width)
	}
	explain.Wrap(w, "before: "+sumsText(d.Before), "", "  ", width)
	explain.Wrap(w, "after:  "+sumsText(d.After), "", "  ", width)
}

// rows returns the table of moves.
func (v *defragView) rows(d *wire.Defrag) [][]string {
	head := []string{"MOVE", "WORKLOAD", "TASK", "FROM", "DEVICES", "TO", "DEVICES", "RAN", "FREE DEVICES", "FREE NODES"}
	switch v.options.Goal {
	case defrag.Jobs:
		head = append(head, "PENDING")
	case defrag.Room:
		head = append(head, "UNUSABLE")
	}
	rows := [][]string{head}
	for i := range d.Moves {
		m := &d.Moves[i]
		row := []string{
			strconv.Itoa(i + 1), m.Workload, m.Task, m.From, devices(&wire.Decision{Devices: m.FromDevices}), m.To, devices(&wire.Decision{Devices: m.Devices}),
			cmp.Or(m.Ran, "-"), strconv.Itoa(m.After.FreeDevices), strconv.Itoa(m.After.FreeNodes),
		}
		switch v.options.Goal {
		case defrag.Jobs:
			row = append(row, strconv.Itoa(m.After.Pending))
		case defrag.Room:
			row = append(row, quantity.Decimal(m.After.Unusable, 1))
		}
		rows = append(rows, row)
	}
	return rows
}

// sumsText says what is free.
func sumsText(s wire.DefragSums) string {
	text := fmt.Sprintf("%s free, %s free, %s pending", english.Count(s.FreeDevices, "device"), english.Count(s.FreeNodes, "node"), english.Count(s.Pending, "job"))
	if s.Unusable > 0 {
		text += fmt.Sprintf("; arriving tasks cannot use %s of the free room", quantity.Decimal(s.Unusable, 1)+" devices")
	}
	return text
}
