package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/quantity"
)

// Style says how a picture is drawn.
type Style struct {
	Color bool // use ANSI colors, for terminals only
	Width int  // the number of columns; 0 means 80
}

const (
	nameColumns = 26 // the most columns that a node name takes
	letters     = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	maxRows     = 24 // rows of one node group; the remaining nodes are only counted
)

// Picture draws the devices of the cluster: a row for each node, a cell for each device, and
// a legend of the workloads that hold them. Nodes that look the same share a row.
func Picture(w io.Writer, state *cluster.State, style Style) {
	p := &painter{style: style, letterOf: map[string]byte{}}
	if p.style.Width == 0 {
		p.style.Width = 80
	}
	p.assignLetters(state)
	p.nameWidth = 12
	for _, n := range state.Nodes() {
		p.nameWidth = min(nameColumns, max(p.nameWidth, utf8.RuneCountInString(n.Name)))
	}
	for _, g := range state.View().Groups() {
		p.section(w, GroupTitle(g.Key), g.Nodes)
	}
	plain := slices.DeleteFunc(slices.Clone(state.Nodes()), func(n *cluster.Node) bool { return n.Group() != nil })
	if len(plain) > 0 {
		p.section(w, "without devices", plain)
	}
	p.legend(w)
}

type painter struct {
	style     Style
	letterOf  map[string]byte // by the ID of the workload; empty if there are more workloads than letters
	order     []string
	tooMany   bool
	nameWidth int     // the number of columns of node names
	used      [8]bool // the marks that occur, for the legend
}

// The marks of a device.
const (
	markFree = iota
	markWhole
	markPart
	markExclusive
	markNominated
	markReleasing
	markLost
	markForeign
)

var markColors = [...]string{markFree: "2", markWhole: "32", markPart: "33", markExclusive: "35", markNominated: "36", markReleasing: "31", markLost: "31", markForeign: "33"}

// assignLetters gives letters to the workloads in the order in which they occur in the picture.
func (p *painter) assignLetters(state *cluster.State) {
	assignOn := func(n *cluster.Node) {
		for i := range n.Devices {
			for _, h := range holders(n, i) {
				if id := h.task.Job.ID; p.letterOf[id] == 0 && !p.tooMany {
					if len(p.order) == len(letters) {
						p.tooMany, p.letterOf, p.order = true, map[string]byte{}, nil
						return
					}
					p.letterOf[id] = letters[len(p.order)]
					p.order = append(p.order, id)
				}
			}
		}
	}
	for _, g := range state.View().Groups() {
		for _, n := range g.Nodes {
			if assignOn(n); p.tooMany {
				return
			}
		}
	}
}

type holder struct {
	task  *cluster.Task
	claim cluster.Claim
}

// holders returns the tasks that hold the device or a part of it.
func holders(n *cluster.Node, device int) []holder {
	var out []holder
	for _, t := range n.Tasks {
		for _, c := range t.Claims {
			if c.Device == device {
				out = append(out, holder{t, c})
			}
		}
	}
	return out
}

type row struct {
	first       string // the name of the first node
	nodes       int
	cells, note string
}

func (p *painter) section(w io.Writer, title string, nodes []*cluster.Node) {
	fmt.Fprintf(w, "%s\n", title)
	var rows []*row
	seen := map[string]*row{}
	for _, n := range nodes {
		look, note := p.node(n)
		key := look + "\x00" + note
		r := seen[key]
		if r == nil {
			r = &row{first: n.Name, cells: look, note: note}
			seen[key] = r
			rows = append(rows, r)
		}
		r.nodes++
	}
	hidden := 0
	if len(rows) > maxRows {
		slices.SortStableFunc(rows, func(a, b *row) int { return cmp.Compare(b.nodes, a.nodes) })
		for _, r := range rows[maxRows:] {
			hidden += r.nodes
		}
		rows = rows[:maxRows]
	}
	columns := p.nameWidth
	for _, r := range rows {
		if r.nodes > 1 {
			columns = nameColumns
		}
	}
	for _, r := range rows {
		name := Clip(r.first, columns)
		if r.nodes > 1 {
			times := fmt.Sprintf(" … × %d nodes", r.nodes)
			name = Clip(r.first, columns-utf8.RuneCountInString(times)) + times
		}
		fmt.Fprintf(w, "  %s  %s\n", pad(name, columns), strings.TrimRight(r.cells+r.note, " "))
	}
	if hidden > 0 {
		fmt.Fprintf(w, "  … and %s that look otherwise\n", english.Count(hidden, "more node"))
	}
}

// node returns the cells of the devices of a node, and a note that says how many are free. For
// a node without devices, the note says how many cores are held.
func (p *painter) node(n *cluster.Node) (look, note string) {
	if n.Group() == nil {
		l := n.Ledger(cluster.CPU)
		if l == nil {
			return "", "no cores"
		}
		return "", fmt.Sprintf("%s of %s cores held", quantity.Decimal(float64(l.Used)/1000, 1), quantity.Decimal(float64(l.Capacity)/1000, 1))
	}
	width := 4
	if room := p.style.Width - nameColumns - 12; len(n.Devices)*width > room {
		width = max(1, room/len(n.Devices))
	}
	cells := make([]string, len(n.Devices))
	free := 0
	for i := range n.Devices {
		mark, text := p.cell(n, i, width)
		p.used[mark] = true
		if mark == markFree {
			free++
		}
		cells[i] = p.paint(mark, pad(text, width))
	}
	if p.tooMany {
		slices.Sort(cells) // without letters the order of the devices does not matter, and more nodes look the same
	}
	for i := range cells {
		look += cells[i]
	}
	return look, fmt.Sprintf(" %d free", free)
}

var levels = []rune("▁▂▃▄▅▆▇█")

// cell returns the mark and the text of one device.
func (p *painter) cell(n *cluster.Node, i, width int) (int, string) {
	d := &n.Devices[i]
	held := holders(n, i)
	switch {
	case d.Lost:
		return markLost, "x"
	case len(held) == 0 && d.Memory > 0 && d.Foreign*8 >= d.Memory:
		return markForeign, Clip("?"+string(levels[min(7, int(d.Foreign*8/d.Memory)-1)]), width)
	case len(held) == 0:
		return markFree, "·"
	}
	mark := markPart
	fill := string(levels[min(7, max(0, int(d.Use.Milli)*8/1000-1))])
	switch {
	case slices.ContainsFunc(held, func(h holder) bool { return h.task.Status == cluster.Releasing }):
		mark = markReleasing
	case slices.ContainsFunc(held, func(h holder) bool { return h.task.Status == cluster.Nominated }):
		mark = markNominated
	case d.Use.Exclusive > 0:
		mark = markExclusive
	case d.Use.Milli >= cluster.Whole && len(held) == 1:
		mark = markWhole
	}
	keys := ""
	for _, h := range held {
		if k := p.letterOf[h.task.Job.ID]; k != 0 && !strings.Contains(keys, string(rune(k))) {
			keys += string(rune(k))
		}
	}
	if len(keys) > 2 {
		keys = keys[:1] + "+"
	}
	switch {
	case keys == "" || width < 3:
		if mark == markExclusive {
			return mark, "■"
		}
		return mark, fill
	case mark == markReleasing:
		return mark, Clip("~"+keys, width)
	case mark == markNominated:
		return mark, "(" + keys[:1] + ")"
	case mark == markExclusive:
		return mark, "[" + keys[:1] + "]"
	}
	return mark, keys + fill
}

func (p *painter) paint(mark int, s string) string {
	if !p.style.Color {
		return s
	}
	return "\x1b[" + markColors[mark] + "m" + s + "\x1b[0m"
}

// legend writes what the marks that occur mean, and which workloads the letters stand for.
func (p *painter) legend(w io.Writer) {
	var marks []string
	for _, m := range []struct {
		mark    int
		a, none string
		text    string
	}{
		{markFree, "·", "·", "free"}, {markWhole, "A█", "█", "whole"}, {markPart, "A▄", "▄", "part"},
		{markExclusive, "[A]", "■", "exclusive"}, {markNominated, "(A)", "▄", "reserved"},
		{markReleasing, "~A", "▄", "releasing"}, {markLost, "x", "x", "lost"}, {markForeign, "?▄", "?▄", "used by a process that Berth did not place"},
	} {
		if p.used[m.mark] {
			sign := m.a
			if p.tooMany {
				sign = m.none
			}
			marks = append(marks, p.paint(m.mark, sign)+" "+m.text)
		}
	}
	if len(marks) == 0 {
		return
	}
	fmt.Fprintf(w, "\n  %s\n", strings.Join(marks, "   "))
	if p.tooMany {
		fmt.Fprintf(w, "  more than %d workloads hold devices: too many for letters\n", len(letters))
		return
	}
	line := " "
	for _, id := range p.order {
		entry := fmt.Sprintf(" %c %s ", p.letterOf[id], id)
		if utf8.RuneCountInString(line)+utf8.RuneCountInString(entry) > p.style.Width && line != " " {
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			line = " "
		}
		line += entry
	}
	if strings.TrimSpace(line) != "" {
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

func pad(s string, width int) string {
	if n := utf8.RuneCountInString(s); n < width {
		return s + strings.Repeat(" ", width-n)
	}
	return s
}

// Clip shortens a name to the width. It cuts the middle, because names of nodes and workloads
// usually differ at their beginning or end.
func Clip(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	head := (width - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(width-1-head):])
}
