package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/english"
)

// summaryHead returns how many nodes a section has and how many of their devices are free, and
// how many are held in part, reserved, releasing, lost or used by other processes.
func summaryHead(s *section) string {
	text := english.Thousands(len(s.nodes)) + " " + english.Noun(len(s.nodes), "node")
	counts := countCells(s)
	if len(counts) == 0 {
		return text
	}
	var free []string
	var total [8]int
	for _, c := range counts {
		free = append(free, strings.TrimRight(fmt.Sprintf("%s of %s %s", english.Thousands(c.marks[markFree]), english.Thousands(c.cells), c.noun()), " "))
		for i, n := range c.marks {
			total[i] += n
		}
	}
	text += "; free: " + listInOrder(free, len(free))
	for _, m := range []struct {
		mark int
		text string
	}{{markPart, "held in part"}, {markNominated, "reserved"}, {markReleasing, "releasing"}, {markLost, "lost"}, {markForeign, "used by other processes"}} {
		if n := total[m.mark]; n > 0 {
			text += "; " + english.Thousands(n) + " " + m.text
		}
	}
	return text
}

// cellCount counts the cells of one kind.
type cellCount struct {
	kind  string // a MIG profile, or ""
	part  bool   // the cells are slices or replicas
	cells int
	marks [8]int
}

func (c *cellCount) noun() string {
	switch {
	case c.kind != "":
		return c.kind
	case c.part:
		return "replicas"
	}
	return "devices"
}

// countCells counts the cells of a section by kind, the largest slices first.
func countCells(s *section) []cellCount {
	var out []cellCount
	for _, r := range s.rows {
		for k := range r.look.cells {
			c := &r.look.cells[k]
			i := slices.IndexFunc(out, func(o cellCount) bool { return o.kind == c.kind && o.part == (c.size > 0) })
			if i < 0 {
				i = len(out)
				out = append(out, cellCount{kind: c.kind, part: c.size > 0})
			}
			out[i].cells += r.nodes
			out[i].marks[c.mark] += r.nodes
		}
	}
	slices.SortStableFunc(out, func(a, b cellCount) int { return CompareNatural(b.kind, a.kind) })
	return out
}
