package manifest

import (
	"fmt"

	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/strict"
	"go.yaml.in/yaml/v3"
)

// Error is one thing that is wrong in a file, and where.
type Error = strict.Error

// Errors is everything that is wrong, sorted by place.
type Errors = strict.Errors

type path = field.Path

// source is where an object was written. The document's tree is there while the
// object is checked; later only the places that other objects can contradict.
type source struct {
	file  string
	start strict.Position
	root  *yaml.Node
	marks map[string]strict.Position
}

// find is the place of the field, or of the nearest field around it that is there.
func (s *source) find(p path) strict.Position {
	if s.root != nil {
		return strict.PositionOf(s.root, p)
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
	s.marks = make(map[string]strict.Position, len(keep))
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
	return fmt.Sprintf("%s:%d", s.file, s.start.Line)
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
		e.File, e.Line, e.Column = r.src.file, at.Line, at.Column
	}
	*r.errs = append(*r.errs, e)
}

// take reports what is wrong with the object as its conversion says.
func (r reporter) take(notes convert.Notes) {
	for _, n := range notes {
		if n.Severity == convert.Invalid {
			r.errorf(n.Path, "%s", n.Message)
		}
	}
}
