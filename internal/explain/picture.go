package explain

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
)

// Style says how a picture is drawn.
type Style struct {
	Color bool // use ANSI colors, for terminals only
	Width int  // the number of columns; 0 means 80
	Wide  bool // names are not shortened, and all nodes are drawn
}

const (
	leastNameColumns = 12  // the fewest columns of the names of nodes
	mostNameColumns  = 26  // the most columns of them, unless Wide is set
	groupRows        = 24  // a node group with more rows is summed up
	pictureRows      = 48  // node groups are summed up until there are no more rows
	pictureOwners    = 104 // node groups are summed up until there are no more letters
)

// Picture draws the devices of the cluster: a row for each node, a cell for each device, and
// a legend of the workloads that hold them. Nodes that look the same share a row. A node group
// with too many rows is summed up: how many of its nodes have how many free devices.
func Picture(w io.Writer, state *cluster.State, style Style) {
	p := &painter{style: style, owner: func(j *cluster.Job) string { return j.ID }, hint: "; -o wide shows all of them in full"}
	p.picture(w, state)
}

// QueuePicture draws the devices of the cluster like Picture, with a letter for each queue
// instead of each workload. The function title returns the name that the legend shows for a
// queue.
func QueuePicture(w io.Writer, state *cluster.State, style Style, title func(queue string) string) {
	p := &painter{style: style, owner: func(j *cluster.Job) string { return title(j.Queue) }, byQueue: true}
	p.picture(w, state)
}

func (p *painter) picture(w io.Writer, state *cluster.State) {
	if p.style.Width == 0 {
		p.style.Width = 80
	}
	p.letterOf = map[string]string{}
	sections := p.sections(state)
	p.sumUp(sections)
	p.assignLetters(sections)
	p.assignColors(sections)
	p.shortenNames(sections)
	for _, s := range sections {
		p.draw(w, s)
	}
	p.legend(w)
}

// painter draws a picture.
type painter struct {
	style     Style
	owner     func(*cluster.Job) string // what the letter of a cell stands for
	byQueue   bool                      // it stands for a queue
	letterOf  map[string]string         // by owner
	order     []string                  // the owners, by letter
	queues    []string                  // the queues that have colors, by color
	names     Names                     // of nodes
	nameWidth int                       // the number of columns of the names of nodes
	shortened bool                      // the name of a node is shortened
	hint      string                    // says how names are shown in full
	used      [8]bool                   // the marks that occur, for the legend
	slices    bool                      // MIG slices occur, for the legend
	replicas  bool                      // replicas of devices occur, for the legend
	islands   bool                      // islands of devices are drawn apart, for the legend
}

// section is a node group, or the nodes without devices.
type section struct {
	title    string
	nodes    []*cluster.Node
	rows     []*row
	summedUp bool // rows are not drawn
}

// row is one or more nodes that look the same.
type row struct {
	first *cluster.Node
	nodes int
	look  look
}

func (p *painter) sections(state *cluster.State) []*section {
	var out []*section
	for _, g := range state.View().Groups() {
		out = append(out, p.section(pictureTitle(g), g.Nodes))
	}
	plain := slices.DeleteFunc(slices.Clone(state.Nodes()), func(n *cluster.Node) bool { return n.Group() != nil })
	if len(plain) > 0 {
		out = append(out, p.section("without devices", plain))
	}
	return out
}

func (p *painter) section(title string, nodes []*cluster.Node) *section {
	s := &section{title: title, nodes: slices.Clone(nodes)}
	slices.SortFunc(s.nodes, func(a, b *cluster.Node) int { return CompareNatural(a.Name, b.Name) })
	seen := map[string]*row{}
	for _, n := range s.nodes {
		l := p.lookOf(n)
		key := l.key()
		if seen[key] == nil {
			seen[key] = &row{first: n, look: l}
			s.rows = append(s.rows, seen[key])
		}
		seen[key].nodes++
	}
	return s
}

// sumUp chooses the sections that are summed up: those with too many rows, and then, until rows
// and letters are few enough, the section with the most rows.
func (p *painter) sumUp(sections []*section) {
	if p.style.Wide {
		return
	}
	for _, s := range sections {
		s.summedUp = len(s.rows) > groupRows
	}
	for {
		drawn := slices.DeleteFunc(slices.Clone(sections), func(s *section) bool { return s.summedUp })
		rows, owners := 0, map[string]bool{}
		for _, s := range drawn {
			rows += len(s.rows)
			s.eachCell(func(c *cell) {
				for _, o := range c.owners {
					owners[o] = true
				}
			})
		}
		if len(drawn) == 0 || rows <= pictureRows && len(owners) <= pictureOwners {
			return
		}
		slices.MaxFunc(drawn, func(a, b *section) int { return cmp.Compare(len(a.rows), len(b.rows)) }).summedUp = true
	}
}

func (s *section) eachCell(visit func(*cell)) {
	for _, r := range s.rows {
		for i := range r.look.cells {
			visit(&r.look.cells[i])
		}
	}
}

// shortenNames chooses the texts of the names of nodes and the width of their column. The names
// of a section are shortened by what they have in common.
func (p *painter) shortenNames(sections []*section) {
	p.names, p.nameWidth = Names{}, leastNameColumns
	used := map[string]int{}
	for _, s := range sections {
		all, room := []string{}, p.nameRoom(s)
		for _, n := range s.nodes {
			all = append(all, n.Name)
		}
		for name, text := range Shorten(all, room) {
			p.names[name] = text
			used[text]++
		}
	}
	for name, text := range p.names {
		if used[text] > 1 {
			p.names[name] = name
		}
	}
	for _, s := range sections {
		if s.summedUp {
			continue
		}
		for _, r := range s.rows {
			p.nameWidth = max(p.nameWidth, utf8.RuneCountInString(p.rowName(r)))
			p.shortened = p.shortened || p.names[r.first.Name] != r.first.Name
		}
	}
}

// nameRoom returns how many columns the name of a node of the section has.
func (p *painter) nameRoom(s *section) int {
	most := min(mostNameColumns, p.style.Width/3)
	switch {
	case p.style.Wide:
		return math.MaxInt
	case s.summedUp:
		return max(leastNameColumns, p.style.Width-summaryColumns-p.barWidth())
	}
	times := 0
	for _, r := range s.rows {
		if r.nodes > 1 {
			times = max(times, utf8.RuneCountInString(timesText(r)))
		}
	}
	return max(leastNameColumns, most-times)
}

// rowName returns the name of the first node of a row, and how many others look the same.
func (p *painter) rowName(r *row) string {
	if r.nodes == 1 {
		return p.names[r.first.Name]
	}
	return p.names[r.first.Name] + timesText(r)
}

func timesText(r *row) string {
	return fmt.Sprintf(" … × %s nodes", english.Thousands(r.nodes))
}

func (p *painter) draw(w io.Writer, s *section) {
	if s.summedUp {
		p.summary(w, s)
		return
	}
	Wrap(w, s.title, "", "  ", p.style.Width)
	l := p.layout(s)
	for _, r := range s.rows {
		lines := l.lines(p, &r.look)
		for i, line := range lines {
			name, note := "", ""
			if i == 0 {
				name, note = p.rowName(r), r.look.note
			}
			fmt.Fprintln(w, strings.TrimRight("  "+pad(name, p.nameWidth)+"  "+line+note, " "))
		}
	}
}

func pad(s string, width int) string {
	if n := utf8.RuneCountInString(s); n < width {
		return s + strings.Repeat(" ", width-n)
	}
	return s
}

// padLeft is pad for numbers, which are aligned at their ends.
func padLeft(s string, width int) string {
	return strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s))) + s
}
