package explain

import (
	"strings"
	"unicode/utf8"
)

const (
	cellColumns = 4 // the fewest columns of a whole device
	islandGap   = 2 // columns between islands of devices
)

// layout is how the cells of a section are divided into lines.
type layout struct {
	cell    int // columns of a whole device
	unit    int // columns of a compute slice, or of a replica
	width   int // columns of the cells of a line
	perLine int // blocks of a line
}

// block is what is not divided into lines: a whole device, or all parts of a physical device.
type block []cell

// blocks divides the cells of a node.
func (l *look) blocks() []block {
	var out []block
	for i, c := range l.cells {
		if i > 0 && c.size > 0 && !c.begins && l.cells[i-1].size > 0 {
			out[len(out)-1] = append(out[len(out)-1], c)
			continue
		}
		out = append(out, block{c})
	}
	return out
}

// layout chooses the widths so that the texts of all cells of the section fit. The lines have as
// many blocks as fit into the width of the picture.
func (p *painter) layout(s *section) layout {
	l := layout{cell: cellColumns, unit: 2}
	note := 0
	s.eachCell(func(c *cell) {
		columns := utf8.RuneCountInString(p.text(c)) + 1
		if c.size == 0 {
			l.cell = max(l.cell, columns)
		} else {
			l.unit = max(l.unit, (columns+c.size-1)/c.size)
		}
	})
	most := 0
	for _, r := range s.rows {
		most, note = max(most, len(r.look.blocks())), max(note, utf8.RuneCountInString(r.look.note))
	}
	room := p.style.Width - p.nameWidth - 4 - note
	for lines := 1; ; lines++ {
		l.perLine, l.width = max(1, (most+lines-1)/lines), 0
		for _, r := range s.rows {
			l.width = max(l.width, l.widest(&r.look))
		}
		if l.width <= room || l.perLine == 1 {
			return l
		}
	}
}

// widest returns the number of columns of the longest line of a node.
func (l *layout) widest(look *look) int {
	widest := 0
	for _, line := range l.divide(look.blocks()) {
		columns := 0
		for i, b := range line {
			columns += l.columns(b, i == 0)
		}
		if line[len(line)-1][0].size > 0 {
			columns++ // the last bar
		}
		widest = max(widest, columns)
	}
	return widest
}

func (l *layout) divide(blocks []block) [][]block {
	var out [][]block
	for len(blocks) > 0 {
		n := min(l.perLine, len(blocks))
		out, blocks = append(out, blocks[:n]), blocks[n:]
	}
	return out
}

// columns returns the width of a block with the bar before it.
func (l *layout) columns(b block, first bool) int {
	if b[0].size == 0 {
		if b[0].begins && !first {
			return l.cell + 2
		}
		if b[0].island && !first {
			return l.cell + islandGap
		}
		return l.cell
	}
	columns := 1
	for _, c := range b {
		columns += c.size * l.unit
	}
	return columns
}

// lines returns the cells of a node in lines, each padded to the width of the section.
func (l *layout) lines(p *painter, look *look) []string {
	var out []string
	for _, line := range l.divide(look.blocks()) {
		var b strings.Builder
		columns := 0
		for i, block := range line {
			b.WriteString(l.text(p, block, i == 0))
			columns += l.columns(block, i == 0)
		}
		if line[len(line)-1][0].size > 0 {
			b.WriteString("│")
			columns++
		}
		out = append(out, b.String()+strings.Repeat(" ", max(0, l.width-columns)))
	}
	if len(out) == 0 {
		return []string{""}
	}
	return out
}

// text returns a block. Of a slice that is wider than its text, the rest is drawn as a line.
func (l *layout) text(p *painter, b block, first bool) string {
	out := ""
	switch {
	case b[0].size > 0:
		out = "│"
	case b[0].begins && !first:
		out = "│ "
	case b[0].island && !first:
		out, p.islands = strings.Repeat(" ", islandGap), true
	}
	for i := range b {
		c := &b[i]
		p.used[c.mark] = true
		text, width := p.text(c), l.cell
		if c.size > 0 {
			p.slices, p.replicas = p.slices || c.kind != "", p.replicas || c.kind == ""
			width = c.size * l.unit
			end := (c.size-1)*l.unit + 1 // a slice of the smallest size is drawn by its text only
			text += strings.Repeat(rest(c), max(0, end-utf8.RuneCountInString(text)))
		}
		out += p.paint(c, pad(text, width))
	}
	return out
}

// rest returns what fills a slice after its text.
func rest(c *cell) string {
	switch c.mark {
	case markFree:
		return "·"
	case markWhole, markExclusive, markNominated, markReleasing:
		return "━"
	}
	return " "
}
