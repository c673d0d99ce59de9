package command

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/berth-project/berth/internal/explain"
)

// leastColumn is the fewest columns to which names are shortened.
const leastColumn = 12

// fitGrid prints rows like grid, in at most width columns. If they are wider, the names in the
// given columns are shortened, those of the widest column first. The first row is the head.
func fitGrid(w io.Writer, rows [][]string, width int, names ...int) {
	widths, total := columnWidths(rows)
	for total > width {
		widest := -1
		for _, i := range names {
			if i < len(widths) && widths[i] > leastColumn && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
		total--
	}
	for _, i := range names {
		var all []string
		for _, r := range rows[1:] {
			all = append(all, r[i])
		}
		short := explain.Shorten(all, widths[i])
		for _, r := range rows[1:] {
			r[i] = short[r[i]]
		}
	}
	grid(w, rows)
}

// wrapLast divides the texts of the last column into lines, so that the rows are at most width
// columns wide.
func wrapLast(rows [][]string, width int) [][]string {
	widths, total := columnWidths(rows)
	last := len(widths) - 1
	room := max(leastColumn, width-(total-widths[last]))
	var out [][]string
	for _, r := range rows {
		var b strings.Builder
		explain.Wrap(&b, r[last], "", "", room)
		for i, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
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
