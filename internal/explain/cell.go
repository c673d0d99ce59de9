package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/quantity"
)

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

var levels = []rune("▁▂▃▄▅▆▇█")

// cell is one device of a node, as it is drawn.
type cell struct {
	mark   int
	fill   rune     // how much of the device is held, if anything is
	owners []string // what holds the device, in the order of the tasks
	queue  string   // of the first task that holds the device
	kind   string   // the MIG profile of a slice
	size   int      // of a slice or replica: its part of the physical device; 0 for a whole device
	begins bool     // the cell is the first one of a physical device, or of a kind of devices
	island bool     // the cell is the first one of an island of connected devices
}

// look is how a node is drawn. Nodes with equal looks share a row.
type look struct {
	cells []cell
	free  int    // how many devices are free
	note  string // what is written after the cells
}

// key returns a text that is equal for equal looks.
func (l *look) key() string {
	var b strings.Builder
	for i := range l.cells {
		c := &l.cells[i]
		fmt.Fprintf(&b, "%d%c%s|%s%d%v%v\x00", c.mark, c.fill, strings.Join(c.owners, "\x01"), c.kind, c.size, c.begins, c.island)
	}
	return b.String() + l.note
}

// lookOf returns how a node is drawn. For a node without devices, the note says how many cores
// are held.
func (p *painter) lookOf(n *cluster.Node) look {
	if len(n.Devices) == 0 {
		return look{note: coresText(n) + closedNote(n)}
	}
	l := look{cells: make([]cell, len(n.Devices))}
	held, islands := holders(n), islandStarts(n)
	for i := range n.Devices {
		c := p.cellOf(&n.Devices[i], held[i])
		c.kind, c.size = profileOf(&n.Devices[i]), partSize(n, i)
		c.begins = i > 0 && begins(n, i)
		c.island = islands[i] && !c.begins
		if c.mark == markFree {
			l.free++
		}
		l.cells[i] = c
	}
	l.note = fmt.Sprintf(" %d free", l.free) + closedNote(n)
	return l
}

func coresText(n *cluster.Node) string {
	l := n.Ledger(cluster.CPU)
	if l == nil {
		return "no cores"
	}
	return fmt.Sprintf("%s of %s cores held", quantity.Decimal(float64(l.Used)/1000, 1), quantity.Decimal(float64(l.Capacity)/1000, 1))
}

// closedText says why a node takes no new tasks, so that what is free on it cannot be used. It
// returns "" if the node takes tasks.
func closedText(n *cluster.Node) string {
	switch {
	case n.Unschedulable:
		return "cordoned"
	case !n.Ready():
		return "not ready"
	}
	return ""
}

func closedNote(n *cluster.Node) string {
	if text := closedText(n); text != "" {
		return ", " + text
	}
	return ""
}

type holder struct {
	task  *cluster.Task
	claim cluster.Claim
}

// holders returns, for each device of the node, the tasks that hold the device or a part of it.
func holders(n *cluster.Node) [][]holder {
	out := make([][]holder, len(n.Devices))
	for _, t := range n.Tasks {
		for _, c := range t.Claims {
			if c.Device < len(out) {
				out[c.Device] = append(out[c.Device], holder{t, c})
			}
		}
	}
	return out
}

func (p *painter) cellOf(d *cluster.Device, held []holder) cell {
	switch {
	case d.Lost:
		return cell{mark: markLost}
	case len(held) == 0 && d.Memory > 0 && d.Foreign*8 >= d.Memory:
		return cell{mark: markForeign, fill: levels[min(7, int(d.Foreign*8/d.Memory)-1)]}
	case len(held) == 0:
		return cell{mark: markFree}
	}
	c := cell{mark: markPart, queue: held[0].task.Job.Queue, fill: levels[min(7, max(0, int(d.Use.Milli)*8/1000-1))]}
	switch {
	case slices.ContainsFunc(held, func(h holder) bool { return h.task.Status == cluster.Releasing }):
		c.mark = markReleasing
	case slices.ContainsFunc(held, func(h holder) bool { return h.task.Status == cluster.Nominated }):
		c.mark = markNominated
	case d.Use.Exclusive > 0:
		c.mark = markExclusive
	case d.Use.Milli >= cluster.Whole && len(held) == 1:
		c.mark = markWhole
	}
	for _, h := range held {
		if o := p.owner(h.task.Job); !slices.Contains(c.owners, o) {
			c.owners = append(c.owners, o)
		}
	}
	if p.byQueue {
		c.queue = c.owners[0]
	}
	return c
}

// text returns the text of a cell.
func (p *painter) text(c *cell) string {
	switch c.mark {
	case markLost:
		return "x"
	case markForeign:
		return "?" + string(c.fill)
	case markFree:
		return "·"
	}
	first, keys := p.letterOf[c.owners[0]], p.letterOf[c.owners[0]]
	switch {
	case len(c.owners) == 2 && len(first) == 1 && len(p.letterOf[c.owners[1]]) == 1:
		keys += p.letterOf[c.owners[1]]
	case len(c.owners) > 1:
		keys += "+"
	}
	switch {
	case c.mark == markReleasing:
		return "~" + keys
	case c.mark == markNominated:
		return "(" + first + ")"
	case c.mark == markExclusive:
		return "[" + first + "]"
	case c.size > 0 && c.mark == markWhole:
		return keys
	}
	return keys + string(c.fill)
}
