package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// letter returns the letters of the owner with the number n: A to Z, a to z, AA to ZZ, AAA, ….
func letter(n int) string {
	if n < len(letters) {
		return letters[n : n+1]
	}
	n -= len(letters)
	digits, count := 2, 26*26
	for ; n >= count; digits++ {
		n -= count
		count *= 26
	}
	out := make([]byte, digits)
	for i := range out {
		out[digits-1-i] = letters[n%26]
		n /= 26
	}
	return string(out)
}

// assignLetters gives letters to what holds devices: to workloads in the order in which they are
// drawn, and to queues by name.
func (p *painter) assignLetters(sections []*section) {
	seen := map[string]bool{}
	for _, s := range sections {
		if s.summedUp {
			continue
		}
		s.eachCell(func(c *cell) {
			for _, o := range c.owners {
				if !seen[o] {
					seen[o] = true
					p.order = append(p.order, o)
				}
			}
		})
	}
	if p.byQueue {
		slices.SortFunc(p.order, CompareNatural)
	}
	for i, o := range p.order {
		p.letterOf[o] = letter(i)
	}
}

// leastName is the least width to which names of the legend are shortened.
const leastName = 20

// entry is a text of the legend, and how it is painted.
type entry struct{ text, color string }

// legend writes what the marks that occur mean, and what the letters stand for.
func (p *painter) legend(w io.Writer) {
	marks := p.marks()
	if len(marks) > 0 || p.shortened {
		fmt.Fprintln(w)
	}
	p.entries(w, "", marks, 3)
	var owners []entry
	names := Names{}
	if !p.style.Wide {
		const before = 6 // the indent, and letters
		names = Shorten(p.order, max(leastName, p.style.Width-before))
	}
	for _, o := range p.order {
		e := entry{text: p.letterOf[o] + " " + cmp.Or(names[o], o)}
		if p.byQueue {
			e.color = p.queueColor(o)
		}
		owners = append(owners, e)
	}
	p.entries(w, "", owners, 2)
	var queues []entry
	for _, q := range p.queues {
		queues = append(queues, entry{q, p.queueColor(q)})
	}
	if len(queues) > 1 && !p.byQueue {
		p.entries(w, "colors of queues: ", queues, 2)
	}
	if p.shortened {
		Wrap(w, "Names of nodes are shortened"+p.hint+".", "  ", "  ", p.style.Width)
	}
}

func (p *painter) marks() []entry {
	var out []entry
	for _, m := range []struct {
		mark       int
		sign, text string
	}{
		{markFree, "·", "free"},
		{markWhole, "A█", "whole"},
		{markPart, "A▄", "part"},
		{markExclusive, "[A]", "exclusive"},
		{markNominated, "(A)", "reserved"},
		{markReleasing, "~A", "releasing"},
		{markLost, "x", "lost"},
		{markForeign, "?▄", "used by a process that Berth did not place"},
	} {
		if p.used[m.mark] {
			e := entry{text: m.sign + " " + m.text}
			switch m.mark {
			case markFree:
				e.color = colorFree
			case markLost, markForeign:
				e.color = colorFault
			}
			out = append(out, e)
		}
	}
	if p.slices {
		out = append(out, entry{text: "│A━━ B ·│ MIG slices of one GPU, by size"})
	}
	if p.replicas {
		out = append(out, entry{text: "│A B ·│ replicas of one GPU"})
	}
	if p.islands {
		out = append(out, entry{text: "·   ·     · the gap is between islands: devices that are connected better"})
	}
	return out
}

// entries writes the entries in lines that fit into the picture, with gap spaces between them.
// More than two lines are aligned in columns.
func (p *painter) entries(w io.Writer, title string, list []entry, gap int) {
	lines := p.divide(title, list, gap, 0)
	if widest := widestEntry(list); len(lines) > 2 {
		if aligned := p.divide(title, list, gap, widest); len(aligned) <= len(lines)*3/2 {
			lines = aligned
		}
	}
	for _, line := range lines {
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

func widestEntry(list []entry) int {
	widest := 0
	for _, e := range list {
		widest = max(widest, utf8.RuneCountInString(e.text))
	}
	return widest
}

// divide returns the lines of the entries, each of which takes at least width columns.
func (p *painter) divide(title string, list []entry, gap, width int) []string {
	var out []string
	line, columns := "  "+title, 2+utf8.RuneCountInString(title)
	for i, e := range list {
		size := utf8.RuneCountInString(e.text)
		switch {
		case i > 0 && columns+gap+size > p.style.Width:
			out = append(out, line)
			line, columns = "  ", 2
		case i > 0:
			line += strings.Repeat(" ", gap)
			columns += gap
		}
		line += p.color(e.color, e.text) + strings.Repeat(" ", max(0, width-size))
		columns += max(width, size)
	}
	if len(list) > 0 {
		out = append(out, line)
	}
	return out
}
