package strict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/printable"
)

// Error is one thing wrong in a file, and where.
type Error struct {
	File         string
	Line, Column int    // from 1; 0 where unknown
	Path         string // the field, such as spec.tasks[0].devices.memory
	Message      string
}

func (e Error) Error() string {
	var w strings.Builder
	if e.File != "" {
		w.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&w, ":%d", e.Line)
			if e.Column > 0 {
				fmt.Fprintf(&w, ":%d", e.Column)
			}
		}
		w.WriteString(": ")
	}
	if e.Path != "" {
		w.WriteString(e.Path + ": ")
	}
	w.WriteString(e.Message)
	return printable.Text(w.String())
}

// Errors is everything wrong at once, sorted by place.
type Errors []Error

// shown bounds how many errors are printed; whoever has more fixes these first.
const shown = 100

// Error prints one error on a line.
func (e Errors) Error() string {
	lines := make([]string, 0, min(len(e), shown)+1)
	for i := range e[:min(len(e), shown)] {
		lines = append(lines, e[i].Error())
	}
	if more := len(e) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find each of them.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i := range e {
		out[i] = e[i]
	}
	return out
}

// Err is nil without errors: an empty Errors in an error would not compare to nil.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	e.sort()
	return slices.Compact(e) // what alternatives inherit is checked for each of them
}

func (e Errors) sort() {
	slices.SortStableFunc(e, func(a, b Error) int {
		return cmp.Or(
			strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
}
