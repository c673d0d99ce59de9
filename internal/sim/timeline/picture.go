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
	nameColumns = 26 // the largest width of the names, in characters
	cellColumns = 8  // the largest width of a column, in characters
	maxRows     = 40 // the number of workloads, and of queues, that are shown if wide is not set
)

var marks = []struct {
	mark  Mark
	color string
	text  string
}{
	{Waiting, "2", "waiting"}, {Nominated, "36", "reserved"}, {Running, "32", "running"},
	{PartlyRunning, "33", "running in part"}, {Evicted, "31", "evicted"}, {Done, "2", "ended"},
}

// painter draws a timeline. A column of the picture is one cycle, or several cycles if
// the output is too narrow.
type painter struct {
	*Timeline
	style           explain.Style
	wide            bool   // show all rows and all events
	clock           string // layout of times
	nameWidth       int    // width of the names, in characters
	workloads       explain.Names
	queueNames      explain.Names
	cyclesPerColumn int // number of cycles in a column
	columns         int
	cellWidth       int           // width of a column, in characters
	showNumbers     bool          // columns are wide enough for numbers
	used            map[Mark]bool // the marks that the legend has to explain
}

// Picture draws the status of each workload, and the use of each queue, over time.
// If wide is set, all rows are shown.
func (c *Timeline) Picture(w io.Writer, style explain.Style, wide bool) {
	p := &painter{Timeline: c, style: style, wide: wide, clock: c.timeLayout(), used: map[Mark]bool{}}
	if p.style.Width == 0 {
		p.style.Width = 80
	}
	fmt.Fprintln(w, p.head())
	histories := slices.Clone(c.Histories)
	slices.SortStableFunc(histories, func(a, b *JobHistory) int { // jobs that have not arrived are last
		return cmp.Or(cmp.Compare(uint(a.Arrived-1), uint(b.Arrived-1)), explain.CompareNatural(a.Job.ID, b.Job.ID))
	})
	queues := p.queues()
	p.measure(histories, queues)
	if len(histories) == 0 {
		fmt.Fprintln(w, "There are no workloads.")
		return
	}
	fmt.Fprintf(w, "\n%s\n", p.axis())
	shown := histories[:p.shownRows(len(histories))]
	for _, h := range shown {
		p.row(w, h)
	}
	p.printHidden(w, len(histories)-len(shown), "workload")
	p.legend(w)
	if len(queues) > 0 {
		p.queueRows(w, queues)
	}
}

func (p *painter) head() string {
	s := fmt.Sprintf("%s, %s of %s", strings.Replace(strings.TrimSuffix(Stamp(p.Start), "Z"), "T", " ", 1)+" UTC", english.Count(p.Cycle, "cycle"), Span(p.Every))
	if p.Settled {
		s += fmt.Sprintf("; settled after cycle %d, at %s", p.LastActiveCycle(), p.time(p.LastActiveCycle()))
	} else if p.NextWake > 0 {
		s += fmt.Sprintf("; quiet after cycle %d, at %s, and not settled: time alone may still change decisions, because past use counts less and less", p.LastActiveCycle(), p.time(p.LastActiveCycle()))
	}
	return s
}

// timeLayout returns a layout of times in which the cycles differ. It has no date if the
// simulation is shorter than a day, and no seconds if all cycles are at full minutes.
func (c *Timeline) timeLayout() string {
	const second, day = int64(1e9), int64(24 * 3600 * 1e9)
	switch {
	case c.Now()-c.Start >= day:
		return "01-02 15:04"
	case c.Every%(60*second) != 0 || c.Start%(60*second) != 0:
		return "15:04:05"
	}
	return "15:04"
}

// measure computes the widths of names and columns from the width of the output.
func (p *painter) measure(histories []*JobHistory, queues []*queueRow) {
	p.nameWidth = 12
	for _, h := range histories {
		p.nameWidth = max(p.nameWidth, utf8.RuneCountInString(h.Job.ID))
	}
	tail := 0 // width of the numbers after the bars of a queue
	for _, q := range queues {
		p.nameWidth = max(p.nameWidth, utf8.RuneCountInString(q.name))
		tail = max(tail, len(q.at(p.Cycle).text())+2)
	}
	if !p.wide {
		p.nameWidth = min(p.nameWidth, nameColumns)
	}
	p.shortenNames(histories, queues)
	room := max(20, p.style.Width-p.nameWidth-4-tail)
	p.cyclesPerColumn = (p.Cycle + room - 1) / room
	p.columns = (p.Cycle + p.cyclesPerColumn - 1) / p.cyclesPerColumn
	p.cellWidth = max(1, min(cellColumns, room/p.columns))
	p.showNumbers = true
	for _, q := range queues {
		for i := range q.changes {
			p.showNumbers = p.showNumbers && len(q.changes[i].text()) < p.cellWidth
		}
	}
}

// shortenNames chooses the texts of the names of workloads and of queues.
func (p *painter) shortenNames(histories []*JobHistory, queues []*queueRow) {
	var workloads, rows []string
	for _, h := range histories {
		workloads = append(workloads, h.Job.ID)
	}
	for _, q := range queues {
		rows = append(rows, q.name)
	}
	p.workloads, p.queueNames = explain.Shorten(workloads, p.nameWidth), explain.Shorten(rows, p.nameWidth)
}

// axis returns the line with the times. Their distances are equal, and large enough
// that they do not overlap.
func (p *painter) axis() string {
	width := len(p.clock) + 1
	step := 1
	for _, step = range []int{1, 2, 5, 10, 20} {
		if step*p.cellWidth >= width {
			break
		}
	}
	line := strings.Repeat(" ", p.nameWidth+4)
	for i := 0; i < p.columns; i += step {
		if p.nameWidth+4+i*p.cellWidth+width > p.style.Width+1 {
			break
		}
		line += fmt.Sprintf("%-*s", step*p.cellWidth, p.time(i*p.cyclesPerColumn+1))
	}
	return strings.TrimRight(line, " ")
}

// column returns the first and the last cycle of a column.
func (p *painter) column(i int) (first, last int) {
	return i*p.cyclesPerColumn + 1, min((i+1)*p.cyclesPerColumn, p.Cycle)
}

// row draws a workload. A column of several cycles shows an eviction if one of them
// has one, and the mark of the last cycle otherwise.
func (p *painter) row(w io.Writer, h *JobHistory) {
	var cells []Mark
	next := 0 // index into h.marks
	for i := range p.columns {
		first, last := p.column(i)
		m := h.Mark(last)
		for ; next < len(h.marks) && h.marks[next].cycle <= last; next++ {
			if h.marks[next].mark == Evicted {
				m = Evicted
			}
		}
		if m == Done && h.Ended < first {
			m = Absent
		}
		p.used[m] = true
		cells = append(cells, m)
	}
	fmt.Fprintf(w, "  %-*s  %s\n", p.nameWidth, p.workloads[h.Job.ID], p.paint(cells))
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
		text := strings.Repeat(string(m), (k-i)*p.cellWidth)
		if m == Done { // the end is shown as a single character
			text = fmt.Sprintf("%-*s", p.cellWidth, string(m))
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
	if p.cyclesPerColumn > 1 {
		parts = append(parts, fmt.Sprintf("a column is %d cycles", p.cyclesPerColumn))
	}
	fmt.Fprintf(w, "\n  %s\n", strings.Join(parts, "   "))
}

// rows returns how many of n rows are shown.
func (p *painter) shownRows(n int) int {
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
