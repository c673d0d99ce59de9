package timeline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/explain"
)

const (
	nameColumns = 26 // at most
	cellColumns = 8  // at most
	maxRows     = 40 // of workloads, and of queues; further rows are only counted
)

var marks = []struct {
	mark  Mark
	color string
	text  string
}{
	{Waiting, "2", "waiting"}, {Promised, "36", "reserved"}, {Running, "32", "running"},
	{Part, "33", "running in part"}, {Evicted, "31", "evicted"}, {Done, "2", "ended"},
}

// painter draws a course. A column of the picture is one cycle, or several cycles if
// the output is too narrow.
type painter struct {
	*Course
	style   explain.Style
	wide    bool   // show all rows and all events
	clock   string // layout of times
	names   int    // width of the names, in characters
	per     int    // number of cycles in a column
	columns int
	cell    int           // width of a column, in characters
	numbers bool          // columns are wide enough for numbers
	used    map[Mark]bool // the marks that the legend has to explain
}

// Picture draws the status of each workload, and the use of each queue, over time.
// If wide is set, all rows are shown.
func (c *Course) Picture(w io.Writer, style explain.Style, wide bool) {
	p := &painter{Course: c, style: style, wide: wide, clock: c.layout(), used: map[Mark]bool{}}
	if p.style.Width == 0 {
		p.style.Width = 80
	}
	fmt.Fprintln(w, p.head())
	lives := slices.Clone(c.Lives)
	slices.SortStableFunc(lives, func(a, b *Life) int { // jobs that have not arrived are last
		return cmp.Compare(uint(a.Arrived-1), uint(b.Arrived-1))
	})
	queues := p.queues()
	p.measure(lives, queues)
	if len(lives) == 0 {
		fmt.Fprintln(w, "There are no workloads.")
		return
	}
	fmt.Fprintf(w, "\n%s\n", p.axis())
	shown := lives[:p.rows(len(lives))]
	for _, l := range shown {
		p.row(w, l)
	}
	p.printHidden(w, len(lives)-len(shown), "workload")
	p.legend(w)
	if len(queues) > 0 {
		p.queueRows(w, queues)
	}
}

func (p *painter) head() string {
	s := fmt.Sprintf("%s, %s of %s", strings.Replace(strings.TrimSuffix(Stamp(p.Start), "Z"), "T", " ", 1)+" UTC", english.Count(p.Cycle, "cycle"), Span(p.Every))
	if p.Settled {
		s += fmt.Sprintf("; settled after cycle %d, at %s", p.Rest(), p.time(p.Rest()))
	} else if p.Wake > 0 {
		s += fmt.Sprintf("; quiet after cycle %d, at %s, and not settled: time alone may still change decisions, because past use counts less and less", p.Rest(), p.time(p.Rest()))
	}
	return s
}

// layout returns the shortest layout of times in which the cycles differ.
func (c *Course) layout() string {
	const second, day = int64(1e9), int64(24 * 3600 * 1e9)
	switch {
	case c.Now()-c.Start >= day:
		return "01-02 15:04"
	case c.Every%(60*second) != 0 || c.Start%(60*second) != 0:
		return "15:04:05"
	}
	return "15:04"
}

func (p *painter) measure(lives []*Life, queues []*queueRow) {
	p.names = 12
	for _, l := range lives {
		p.names = max(p.names, utf8.RuneCountInString(l.Job.ID))
	}
	tail := 0 // width of the numbers after the bars of a queue
	for _, q := range queues {
		p.names = max(p.names, utf8.RuneCountInString(q.name))
		tail = max(tail, len(q.at(p.Cycle).text())+2)
	}
	p.names = min(p.names, nameColumns)
	room := max(20, p.style.Width-p.names-4-tail)
	p.per = (p.Cycle + room - 1) / room
	p.columns = (p.Cycle + p.per - 1) / p.per
	p.cell = max(1, min(cellColumns, room/p.columns))
	p.numbers = true
	for _, q := range queues {
		for i := range q.changes {
			p.numbers = p.numbers && len(q.changes[i].text()) < p.cell
		}
	}
}

// axis returns the line with the times. Their distances are equal, and large enough
// that they do not overlap.
func (p *painter) axis() string {
	width := len(p.clock) + 1
	step := 1
	for _, step = range []int{1, 2, 5, 10, 20} {
		if step*p.cell >= width {
			break
		}
	}
	line := strings.Repeat(" ", p.names+4)
	for i := 0; i < p.columns; i += step {
		if p.names+4+i*p.cell+width > p.style.Width+1 {
			break
		}
		line += fmt.Sprintf("%-*s", step*p.cell, p.time(i*p.per+1))
	}
	return strings.TrimRight(line, " ")
}

// column returns the first and the last cycle of a column.
func (p *painter) column(i int) (first, last int) { return i*p.per + 1, min((i+1)*p.per, p.Cycle) }

// row draws a workload. A column of several cycles shows an eviction if one of them
// has one, and the mark of the last cycle otherwise.
func (p *painter) row(w io.Writer, l *Life) {
	var cells []Mark
	next := 0 // index into l.marks
	for i := range p.columns {
		first, last := p.column(i)
		m := l.Mark(last)
		for ; next < len(l.marks) && l.marks[next].cycle <= last; next++ {
			if l.marks[next].mark == Evicted {
				m = Evicted
			}
		}
		if m == Done && l.Ended < first {
			m = Absent
		}
		p.used[m] = true
		cells = append(cells, m)
	}
	fmt.Fprintf(w, "  %-*s  %s\n", p.names, explain.Clip(l.Job.ID, p.names), p.paint(cells))
}

// paint returns the marks of a row, with colors.
func (p *painter) paint(cells []Mark) string {
	for len(cells) > 0 && cells[len(cells)-1] == Absent {
		cells = cells[:len(cells)-1]
	}
	var b strings.Builder
	for i := 0; i < len(cells); {
		m, k := cells[i], i
		for ; k < len(cells) && cells[k] == m; k++ {
		}
		text := strings.Repeat(string(m), (k-i)*p.cell)
		if m == Done { // the end is shown as a single character
			text = fmt.Sprintf("%-*s", p.cell, string(m))
			if k == len(cells) {
				text = string(m)
			}
		}
		b.WriteString(p.color(m, text))
		i = k
	}
	return b.String()
}

func (p *painter) color(m Mark, text string) string {
	for _, x := range marks {
		if x.mark == m && p.style.Color {
			return "\x1b[" + x.color + "m" + text + "\x1b[0m"
		}
	}
	return text
}

func (p *painter) legend(w io.Writer) {
	var parts []string
	for _, x := range marks {
		if p.used[x.mark] {
			parts = append(parts, p.color(x.mark, string(x.mark))+" "+x.text)
		}
	}
	if p.per > 1 {
		parts = append(parts, fmt.Sprintf("a column is %d cycles", p.per))
	}
	fmt.Fprintf(w, "\n  %s\n", strings.Join(parts, "   "))
}

// rows returns how many of n rows are shown.
func (p *painter) rows(n int) int {
	if p.wide {
		return n
	}
	return min(n, maxRows)
}

func (p *painter) printHidden(w io.Writer, n int, noun string) {
	if n > 0 {
		fmt.Fprintf(w, "  … and %s; -o wide shows all\n", english.Count(n, "more "+noun))
	}
}
