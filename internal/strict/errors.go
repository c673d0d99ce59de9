package strict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/printable"
)

// Error is one mistake in a file and its place.
type Error struct {
	File         string
	Line, Column int    // counted from 1; 0 if they are not known
	Path         string // the field, such as spec.tasks[0].devices.memory
	Message      string
}

// Error returns "file:line:column: path: message". Parts that are not known are
// omitted.
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

// Errors are all mistakes that were found, sorted by place.
type Errors []Error

// maxShown is how many errors are printed at most.
const maxShown = 50

// Error returns one error per line, the first 50 of them.
func (e Errors) Error() string {
	lines := make([]string, 0, min(len(e), maxShown)+1)
	for i := range e[:min(len(e), maxShown)] {
		lines = append(lines, e[i].Error())
	}
	switch more := len(e) - maxShown; {
	case more == 1:
		lines = append(lines, "… and 1 more error")
	case more > 1:
		lines = append(lines, fmt.Sprintf("… and %d more errors", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes each error visible to errors.As.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i := range e {
		out[i] = e[i]
	}
	return out
}

// Err returns the errors, sorted and without duplicates, or nil if there are none. A
// caller returns Err() instead of the Errors: as an error, an empty Errors is not nil.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	e.sort()
	return slices.Compact(e) // fields that several alternatives inherit are checked once for each
}

func (e Errors) sort() {
	slices.SortStableFunc(e, func(a, b Error) int {
		return cmp.Or(
			strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
}
