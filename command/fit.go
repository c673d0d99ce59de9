package command

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berth-project/berth/internal/explain"
)

// leastColumn is the fewest columns to which names are shortened.
const leastColumn = 12

// columnKind is how a column of a table that is too wide becomes narrower.
type columnKind int

const (
	wholeColumn  columnKind = iota // only its head is divided into lines
	nameColumn                     // its names are shortened
	textColumn                     // its texts are divided into lines
	brokenColumn                   // its names are divided into lines, and nothing of them is cut
)

// fitGrid prints rows like grid, in at most width columns. If they are wider, the names in the
// given columns are shortened, those of the widest column first. The first row is the head.
func fitGrid(w io.Writer, rows [][]string, width int, names ...int) {
	kinds := make([]columnKind, len(rows[0]))
	for _, i := range names {
		if i < len(kinds) {
			kinds[i] = nameColumn
		}
	}
	grid(w, slices.Concat(fitRows(rows, width, kinds)...))
}

// fitRows returns the lines of each row, so that they are at most width columns wide. The first
// row is the head. Amounts are never cut, so that a table with many of them may be wider.
func fitRows(rows [][]string, width int, kinds []columnKind) [][][]string {
	widths, total := columnWidths(rows)
	cells, _ := columnWidths(append([][]string{make([]string, len(kinds))}, rows[1:]...))
	narrow := func(least []int) {
		for total > width {
			widest := -1
			for i := range widths {
				if widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				return
			}
			widths[widest]--
			total--
		}
	}
	// First the heads become narrower, then texts, then names.
	least := make([]int, len(kinds))
	for i := range kinds {
		least[i] = max(leastHead(rows[0][i]), cells[i])
	}
	narrow(least)
	for i, k := range kinds {
		if k == textColumn {
			least[i] = leastHead(rows[0][i])
			for _, r := range rows[1:] {
				least[i] = max(least[i], longestWord(r[i]))
			}
		}
	}
	narrow(least)
	for i, k := range kinds {
		if k == nameColumn || k == brokenColumn {
			least[i] = max(leastHead(rows[0][i]), min(cells[i], leastColumn))
		}
	}
	narrow(least)
	useRest(rows, widths, width, kinds)
	out := make([][][]string, len(rows))
	for i, k := range kinds {
		var short explain.Names
		if k == nameColumn {
			short = shortNames(rows[1:], i, widths[i])
		}
		for n, r := range rows {
			lines := []string{r[i]}
			switch {
			case n == 0 || k == textColumn:
				lines = linesOf(r[i], widths[i])
			case k == nameColumn:
				lines[0] = short[r[i]]
			case k == brokenColumn:
				lines = breakName(r[i], widths[i])
			}
			out[n] = addColumn(out[n], lines, i, len(kinds))
		}
	}
	return out
}

// useRest makes columns of text wider where they then need fewer lines, because lines that end
// between words leave some of the width unused.
func useRest(rows [][]string, widths []int, width int, kinds []columnKind) {
	total := 2 * (len(widths) - 1)
	for i, k := range kinds {
		if k == textColumn {
			widths[i] = longestLine(rows, i, widths[i])
		}
		total += widths[i]
	}
	for i, k := range kinds {
		for w := widths[i] + 1; k == textColumn && w <= widths[i]+width-total; w++ {
			if countLines(rows, i, w) < countLines(rows, i, widths[i]) {
				total += w - widths[i]
				widths[i] = w
			}
		}
	}
}

// longestLine returns the width that the texts of a column need if they are divided into lines of
// at most this width.
func longestLine(rows [][]string, column, width int) int {
	n := 0
	for _, r := range rows {
		for _, line := range linesOf(r[column], width) {
			n = max(n, utf8.RuneCountInString(line))
		}
	}
	return n
}

func countLines(rows [][]string, column, width int) int {
	n := 0
	for _, r := range rows {
		n += len(linesOf(r[column], width))
	}
	return n
}

// addColumn sets the column of each line of a row.
func addColumn(row [][]string, lines []string, column, columns int) [][]string {
	for i, line := range lines {
		if i == len(row) {
			row = append(row, make([]string, columns))
		}
		row[i][column] = line
	}
	return row
}

// shortNames returns the texts of the names in a column. Spaces before a name, which show its depth
// in a tree, are kept.
func shortNames(rows [][]string, column, width int) explain.Names {
	var names []string
	deepest := 0
	for _, r := range rows {
		name := strings.TrimLeft(r[column], " ")
		names = append(names, name)
		deepest = max(deepest, len(r[column])-len(name))
	}
	short := explain.Shorten(names, max(leastColumn/2, width-deepest))
	out := explain.Names{}
	for i, r := range rows {
		out[r[column]] = strings.TrimSuffix(r[column], names[i]) + short[names[i]]
	}
	return out
}

// linesOf divides a text into lines of at most width columns.
func linesOf(text string, width int) []string {
	var b strings.Builder
	explain.Wrap(&b, text, "", "", width)
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// leastHead returns the least width with which a head has at most two lines.
func leastHead(head string) int {
	n := longestWord(head)
	for len(linesOf(head, n)) > 2 {
		n++
	}
	return n
}

// breakName divides a name into lines of at most width columns, after hyphens and slashes where
// that is possible. All lines but the first are indented.
func breakName(name string, width int) []string {
	const indent = "  "
	var out []string
	for r := []rune(name); ; {
		if len(r) <= width {
			return append(out, string(r))
		}
		at := width
		for i := width; i > width/2; i-- {
			if r[i-1] == '-' || r[i-1] == '/' {
				at = i
				break
			}
		}
		out = append(out, string(r[:at]))
		r = append([]rune(indent), r[at:]...)
	}
}

func longestWord(text string) int {
	n := 0
	for _, word := range strings.Fields(text) {
		n = max(n, utf8.RuneCountInString(word))
	}
	return n
}

// wrapLast divides the texts of the last column into lines, so that the rows are at most width
// columns wide.
func wrapLast(rows [][]string, width int) [][]string {
	widths, total := columnWidths(rows)
	last := len(widths) - 1
	room := max(leastColumn, width-(total-widths[last]))
	var out [][]string
	for _, r := range rows {
		for i, line := range linesOf(r[last], room) {
			before := make([]string, last)
			if i == 0 {
				before = r[:last:last]
			}
			out = append(out, append(before, line))
		}
	}
	return out
}

// columnWidths returns the widths of the columns, and of the table with two spaces between them.
func columnWidths(rows [][]string) (widths []int, total int) {
	for _, r := range rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, n := range widths {
		total += n + 2
	}
	return widths, total - 2
}
