package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/printable"
	"go.yaml.in/yaml/v3"
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

// failure is nil without errors: an empty Errors in an error would not compare to nil.
func (e Errors) failure() error {
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

// path leads to a field: names and indexes from the object's root.
type path []any

// add returns a longer path and leaves this one alone.
func (p path) add(steps ...any) path {
	return append(p[:len(p):len(p)], steps...)
}

func (p path) String() string {
	var w strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case int:
			w.WriteString("[" + strconv.Itoa(s) + "]")
		case string:
			switch {
			case !plain(s):
				w.WriteString("[" + quote(s) + "]")
			case w.Len() > 0:
				w.WriteString("." + s)
			default:
				w.WriteString(s)
			}
		}
	}
	return w.String()
}

// plain reports whether the name can stand between dots.
func plain(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != ""
}

// quote shows a value from a file without letting it flood or break the terminal.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "…"
	}
	return strconv.Quote(s)
}

type position struct{ line, column int }

// source is where an object was written. The document's tree is there while the
// object is checked; later only the places that other objects can contradict.
type source struct {
	file  string
	start position
	root  *yaml.Node
	marks map[string]position
}

// find is the place of the field, or of the nearest field around it that is there.
func (s *source) find(p path) position {
	if s.root != nil {
		n := locate(s.root, p)
		return position{n.Line, n.Column}
	}
	for ; len(p) > 0; p = p[:len(p)-1] {
		if at, ok := s.marks[p.String()]; ok {
			return at
		}
	}
	return s.start
}

// forget lets go of the document and keeps the places of the given fields.
func (s *source) forget(keep ...path) {
	s.marks = make(map[string]position, len(keep))
	for _, p := range keep {
		s.marks[p.String()] = s.find(p)
	}
	s.root = nil
}

// where is the file and line of the object.
func (s *source) where() string {
	if s == nil || s.file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.file, s.start.line)
}

// locate walks down as far as the path goes.
func locate(n *yaml.Node, p path) *yaml.Node {
	for _, step := range p {
		n = resolve(n)
		var next *yaml.Node
		switch s := step.(type) {
		case int:
			switch {
			case n.Kind == yaml.SequenceNode && s < len(n.Content):
				next = n.Content[s]
			case n.Kind == yaml.MappingNode && s == 0:
				continue // one entry that stands without its list
			}
		case string:
			if n.Kind == yaml.MappingNode {
				next = entry(n, s)
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// reporter collects what is wrong with one object.
type reporter struct {
	src  *source
	errs *Errors
}

func (r reporter) errorf(p path, format string, args ...any) {
	e := Error{Path: p.String(), Message: fmt.Sprintf(format, args...)}
	if r.src != nil {
		at := r.src.find(p)
		e.File, e.Line, e.Column = r.src.file, at.line, at.column
	}
	*r.errs = append(*r.errs, e)
}
