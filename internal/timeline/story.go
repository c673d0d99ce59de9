package timeline

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/numeral"
)

// maxLines is how many events are told unless all are asked for.
const maxLines = 40

func (p *painter) time(cycle int) string { return time.Unix(0, p.at(cycle)).UTC().Format(p.clock) }

// Story tells what happened, line by line: those that come or end in one cycle
// share a line, and what is done to one workload is one. Wide leaves nothing out.
func (c *Course) Story(w io.Writer, style explain.Style, wide bool) {
	p := &painter{Course: c, wide: wide, clock: c.layout()}
	width := style.Width
	if width == 0 {
		width = 80
	}
	lines, hidden := 0, 0
	for _, f := range c.Frames {
		for _, text := range p.tell(f) {
			if lines == maxLines && !wide {
				hidden++
				continue
			}
			lines++
			explain.Wrap(w, text, p.time(f.Cycle)+"  ", strings.Repeat(" ", len(p.clock)+4), width)
		}
	}
	if hidden > 0 {
		fmt.Fprintf(w, "… and %s; -o wide shows all\n", numeral.Count(hidden, "more event"))
	}
	if lines > 0 {
		fmt.Fprintln(w)
	}
}

// tell puts a frame into sentences.
func (p *painter) tell(f *Frame) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	all := func(ids []string, one, many string) {
		most := 4
		if p.wide {
			most = len(ids)
		}
		switch len(ids) {
		case 0:
		case 1:
			say("%s %s", ids[0], one)
		default:
			say("%s %s", explain.List(ids, most), many)
		}
	}
	all(f.Ends, "ends", "end")
	all(f.Arrivals, "arrives", "arrive")
	for _, id := range f.Withdrawn {
		say("%s loses the room it was promised", id)
	}
	type act struct{ workload, action, cause string }
	var acts []act
	nodes := map[act][]string{}
	tasks := map[act]int{}
	for _, d := range f.Decisions {
		a := act{d.Workload, d.Action, explain.CauseText(d.For, d.Reason, d.Landing)}
		if d.For != "" {
			a.cause = "for " + a.cause
		}
		if tasks[a]++; tasks[a] == 1 {
			acts = append(acts, a)
		}
		if list := nodes[a]; len(list) == 0 || list[len(list)-1] != d.Node {
			nodes[a] = append(list, d.Node)
		}
	}
	for _, a := range acts {
		where := explain.List(nodes[a], 4)
		l := p.Life(a.workload)
		switch a.action {
		case "Evict":
			some := ""
			if tasks[a] < len(l.Job.Tasks()) {
				some = fmt.Sprintf(", %s of it,", numeral.Count(tasks[a], "task"))
			}
			say("%s%s evicted %s", a.workload, some, a.cause)
		case "Nominate":
			say("%s is promised room on %s", a.workload, where)
		default:
			before := l.Mark(f.Cycle - 1)
			if before == Running || before == Part {
				say("%s grows by %s on %s", a.workload, numeral.Count(tasks[a], "task"), where)
			} else {
				say("%s starts on %s", a.workload, where)
			}
		}
	}
	return out
}

// Text is the summary for people.
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
	line := numeral.Count(s.Arrived+s.Coming, "workload")
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
		fmt.Fprintf(w, "evictions: %s, %s device-hours of work lost\n", numeral.Count(s.Evictions, "task"), number(s.Lost))
	}
}

func number(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
