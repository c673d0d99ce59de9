package timeline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/explain"
)

// queueRow is the use of one resource by one queue over time.
type queueRow struct {
	name    string
	changes []queueChange
}

type queueChange struct {
	cycle int
	Queue
}

// queues collects the rows from the frames, in the order in which they first occur. Within
// a frame, this is the order of the tree of queues. Queues that are next to each other, and whose
// names differ only in numbers, are in the order of these.
func (p *painter) queues() []*queueRow {
	var out []*queueRow
	known := map[[2]string]*queueRow{}
	resources := map[string]bool{}
	for _, f := range p.Frames {
		for _, q := range f.Queues {
			key := [2]string{q.Queue, q.Resource}
			row := known[key]
			if row == nil {
				row = &queueRow{name: q.Queue}
				known[key] = row
				out = append(out, row)
				resources[q.Resource] = true
			}
			row.changes = append(row.changes, queueChange{f.Cycle, q})
		}
	}
	if len(resources) > 1 {
		for key, row := range known {
			row.name += " " + key[1]
		}
	}
	return explain.NaturalOrder(out, func(row **queueRow) string { return (*row).name })
}

// at returns the use of the queue after the cycle, or nil if none was recorded yet.
func (r *queueRow) at(cycle int) *Queue {
	i, found := slices.BinarySearchFunc(r.changes, cycle, func(c queueChange, at int) int { return cmp.Compare(c.cycle, at) })
	if found {
		return &r.changes[i].Queue
	}
	if i == 0 {
		return nil
	}
	return &r.changes[i-1].Queue
}

var levels = []rune("▁▂▃▄▅▆▇█")

// queueRows draws how much each queue uses of its fair share: as numbers, "used/share", if
// the columns are wide enough, and as bars otherwise.
func (p *painter) queueRows(w io.Writer, rows []*queueRow) {
	what := ""
	if !p.showNumbers {
		what = " (▁ to █, + is more); at the end"
	}
	resource := "devices"
	if !strings.Contains(rows[0].changes[0].Resource, "/") {
		resource = "cores"
	}
	fmt.Fprintf(w, "\n  queues: %s used of the fair share%s\n", resource, what)
	shown := rows[:p.shownRows(len(rows))]
	for _, r := range shown {
		line := ""
		for i := range p.columns {
			_, last := p.column(i)
			line += p.queueCell(r.at(last))
		}
		if !p.showNumbers {
			line += "  " + r.at(p.Cycle).text()
		}
		fmt.Fprintf(w, "  %-*s  %s\n", p.nameWidth, p.queueNames[r.name], strings.TrimRight(line, " "))
	}
	p.printHidden(w, len(rows)-len(shown), "queue")
}

func (p *painter) queueCell(q *Queue) string {
	if q == nil {
		return strings.Repeat(" ", p.cellWidth)
	}
	if p.showNumbers {
		return fmt.Sprintf("%-*s", p.cellWidth, q.text())
	}
	sign := "·"
	switch {
	case q.Used > q.Share:
		sign = "+"
	case q.Used > 0:
		sign = string(levels[max(0, int(q.Used*8/q.Share)-1)])
	}
	return strings.Repeat(sign, p.cellWidth)
}

func (q *Queue) text() string { return amount(q.Used) + "/" + amount(q.Share) }

// amount formats a number with one decimal place, or none if it is an integer or is
// 10 or more.
func amount(v float64) string {
	if v >= 10 || v == float64(int(v)) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
