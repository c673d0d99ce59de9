package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-project/berth/internal/english"
)

const (
	barColumns     = 16 // the longest bar of a summary
	mostLevels     = 16 // nodes with more devices are put together in ranges
	summaryColumns = 38 // the most columns of a line of a summary, without the bar and the name of a node
)

// fillLevel is the nodes of a section with equally many free devices, or with a number of them
// that is in a range. The nodes that take no new tasks are levels of their own.
type fillLevel struct {
	least, most int    // free devices of a node; of nodes that take no tasks: of all of them
	closed      string // why these nodes take no new tasks; "" if they do
	nodes       int
	first       string // the name of the first node
}

// summary writes a section in a line for each fill level: first the nodes with the most free
// devices, last the nodes that take no new tasks.
func (p *painter) summary(w io.Writer, s *section) {
	Wrap(w, s.title, "", "  ", p.style.Width)
	Wrap(w, summaryHead(s), "  ", "  ", p.style.Width)
	list := fillLevels(s)
	most, numbers, titles, counts := 1, 0, 0, 0
	for _, l := range list {
		most = max(most, l.nodes)
		counts = max(counts, len(english.Thousands(l.nodes)))
		if l.closed == "" {
			numbers = max(numbers, utf8.RuneCountInString(l.number()))
		}
	}
	for _, l := range list {
		titles = max(titles, utf8.RuneCountInString(l.title(numbers)))
	}
	for _, l := range list {
		fmt.Fprintf(w, "  %s  %s %s  %s  %s\n", pad(l.title(numbers), titles), padLeft(english.Thousands(l.nodes), counts),
			pad(english.Noun(l.nodes, "node"), len("nodes")), pad(bar(l.nodes, most, p.barWidth()), p.barWidth()), p.example(&l))
	}
}

// barWidth returns the columns of the longest bar. A narrow picture has shorter bars, or none.
func (p *painter) barWidth() int {
	return max(0, min(barColumns, p.style.Width-summaryColumns-leastNameColumns))
}

// example names a node of the level. For nodes that take no new tasks, it says how many of their
// devices are free.
func (p *painter) example(l *fillLevel) string {
	if l.closed != "" {
		return english.Thousands(l.most) + " free on them"
	}
	p.shortened = p.shortened || p.names[l.first] != l.first
	if l.nodes > 1 && p.barWidth() > 0 {
		return "such as " + p.names[l.first]
	}
	return p.names[l.first]
}

// number returns how many devices of a node are free.
func (l *fillLevel) number() string {
	if l.least < l.most {
		return fmt.Sprintf("%d–%d", l.least, l.most)
	}
	return strconv.Itoa(l.most)
}

// title returns the beginning of a line, with the number padded to the width.
func (l *fillLevel) title(width int) string {
	if l.closed != "" {
		return l.closed
	}
	return padLeft(l.number(), width) + " free"
}

// fillLevels returns the levels that occur.
func fillLevels(s *section) []fillLevel {
	devices := 0
	for _, r := range s.rows {
		devices = max(devices, len(r.look.cells))
	}
	width := 1
	if devices > mostLevels {
		width = (devices + 7) / 8
	}
	var out []fillLevel
	for _, r := range s.rows {
		l := levelOf(r, width, devices)
		i := slices.IndexFunc(out, func(o fillLevel) bool {
			return o.closed == l.closed && (o.most == l.most || l.closed != "")
		})
		if i < 0 {
			out = append(out, l)
			continue
		}
		out[i].nodes += l.nodes
		if l.closed != "" {
			out[i].most += l.most
		}
	}
	slices.SortStableFunc(out, func(a, b fillLevel) int {
		return cmp.Or(strings.Compare(a.closed, b.closed), cmp.Compare(b.most, a.most))
	})
	return out
}

// levelOf returns the level of the nodes of a row. A level has width numbers of free devices, of
// which a node has at most the number devices. None is a level of its own.
func levelOf(r *row, width, devices int) fillLevel {
	l := fillLevel{least: r.look.free, most: r.look.free, closed: closedText(r.first), nodes: r.nodes, first: r.first.Name}
	switch {
	case l.closed != "":
		l.most *= r.nodes
	case l.most > 0:
		l.least = (l.most-1)/width*width + 1
		l.most = min(devices, l.least+width-1)
	}
	return l
}

// bar returns a bar for a number of nodes. Its length is at least an eighth of a column.
func bar(n, most, width int) string {
	if width == 0 {
		return ""
	}
	eighths := max(1, n*width*8/most)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}
