package timeline

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/explain"
)

// maxLines is the number of events that are shown if wide is not set.
const maxLines = 40

func (p *painter) time(cycle int) string { return time.Unix(0, p.at(cycle)).UTC().Format(p.clock) }

// Story prints what happened, one event per line. All workloads that arrive in one
// cycle share a line, and so do all that end. Equal decisions about the tasks of one
// workload share a line as well. If wide is set, all events are shown.
func (c *Timeline) Story(w io.Writer, style explain.Style, wide bool) {
	p := &painter{Timeline: c, wide: wide, clock: c.timeLayout()}
	width := style.Width
	if width == 0 {
		width = 80
	}
	lines, hidden := 0, 0
	for _, f := range c.Frames {
		for _, text := range p.sentences(f) {
			if lines == maxLines && !wide {
				hidden++
				continue
			}
			lines++
			explain.Wrap(w, text, p.time(f.Cycle)+"  ", strings.Repeat(" ", len(p.clock)+4), width)
		}
	}
	if hidden > 0 {
		fmt.Fprintf(w, "… and %s; -o wide shows all\n", english.Count(hidden, "more event"))
	}
	if lines > 0 {
		fmt.Fprintln(w)
	}
}

// sentences returns a sentence for each event of the frame.
func (p *painter) sentences(f *Frame) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	addAll := func(ids []string, one, many string) {
		most := 4
		if p.wide {
			most = len(ids)
		}
		switch len(ids) {
		case 0:
		case 1:
			add("%s %s", ids[0], one)
		default:
			add("%s %s", explain.List(ids, most), many)
		}
	}
	addAll(f.Ends, "ends", "end")
	addAll(f.Arrivals, "arrives", "arrive")
	for _, id := range explain.NaturalOrder(f.Withdrawn, func(id *string) string { return *id }) {
		add("%s loses its reservation", id)
	}
	type event struct{ workload, action, cause string }
	var events []event
	nodes := map[event][]string{}
	tasks := map[event]int{}
	for _, d := range f.Decisions {
		a := event{d.Workload, d.Action, explain.CauseText(d.For, d.Reason, d.Landing)}
		if d.For != "" {
			a.cause = "for " + a.cause
		}
		if tasks[a]++; tasks[a] == 1 {
			events = append(events, a)
		}
		if list := nodes[a]; len(list) == 0 || list[len(list)-1] != d.Node {
			nodes[a] = append(list, d.Node)
		}
	}
	for _, a := range explain.NaturalOrder(events, func(a *event) string { return a.action + " " + a.workload }) {
		where := explain.List(nodes[a], 4)
		h := p.History(a.workload)
		switch a.action {
		case "Evict":
			subject, verb := a.workload, "is"
			if tasks[a] < len(h.Job.Tasks()) {
				subject = english.Count(tasks[a], "task") + " of " + a.workload
				if tasks[a] > 1 {
					verb = "are"
				}
			}
			add("%s %s evicted %s", subject, verb, a.cause)
		case "Nominate":
			add("%s is nominated to %s", a.workload, where)
		default:
			before := h.Mark(f.Cycle - 1)
			if before == Running || before == PartlyRunning {
				add("%s grows by %s on %s", a.workload, english.Count(tasks[a], "task"), where)
			} else {
				add("%s starts on %s", a.workload, where)
			}
		}
	}
	return out
}

// Text prints the summary as text.
func (s Summary) Text(w io.Writer) {
	parts := []string{}
	for _, x := range []struct {
		n    int
		text string
	}{{s.Ended, "ended"}, {s.Running, "running"}, {s.Waiting, "waiting"}, {s.Coming, "still to come"}} {
		if x.n > 0 {
			parts = append(parts, strconv.Itoa(x.n)+" "+x.text)
		}
	}
	line := english.Count(s.Arrived+s.Coming, "workload")
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	if s.Makespan != "" {
		line += "; makespan " + s.Makespan
	}
	fmt.Fprintln(w, line)
	line = "wait: mean " + s.MeanWait + ", longest " + s.MaxWait
	if s.Longest != "" {
		line += " (" + s.Longest + ")"
	}
	fmt.Fprintln(w, line)
	if s.Offered > 0 {
		fmt.Fprintf(w, "devices: %s %% in use, %s of %s device-hours\n", number(s.Utilization*100), number(s.DeviceHours), number(s.Offered))
	}
	if s.Evictions > 0 {
		fmt.Fprintf(w, "evictions: %s, %s device-hours of work lost\n", english.Count(s.Evictions, "task"), number(s.Lost))
	}
}

func number(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
