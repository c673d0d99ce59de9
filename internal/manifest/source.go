package manifest

import (
	"fmt"

	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/strict"
	"go.yaml.in/yaml/v3"
)

// Error is one mistake in a file and its place.
type Error = strict.Error

// Errors are all mistakes that were found, sorted by place.
type Errors = strict.Errors

type path = field.Path

// source is where an object is written. The tree of the document is kept while the object
// is checked, and after that only the positions of some fields. Of an object in JSON the text is
// kept, and its tree is made for an error alone.
type source struct {
	file  string
	start strict.Position
	root  *yaml.Node                 // nil after dropTree
	all   *strict.Positions          // of the tree; nil until a position is looked up
	marks map[string]strict.Position // positions that are kept, by path
	text  *strict.JSON               // nil for an object that was decoded from a tree
	trees *lastTree                  // of the file; nil if text is nil
}

// lastTree is the source of a file of which a tree was made last. Only one tree is kept.
type lastTree struct{ of *source }

// position returns where the field is written, or the nearest field around it of which
// the position is known.
func (s *source) position(p path) strict.Position {
	if s.text != nil && s.root == nil {
		s.makeTree()
	}
	if s.root != nil {
		if s.all == nil {
			s.all = strict.PositionsOf(s.root)
		}
		return s.all.Of(p)
	}
	for ; len(p) > 0; p = p[:len(p)-1] {
		if at, ok := s.marks[p.String()]; ok {
			return at
		}
	}
	return s.start
}

// makeTree makes the tree of an object in JSON, and drops the one that was made before.
func (s *source) makeTree() {
	if last := s.trees.of; last != nil {
		last.root, last.all = nil, nil
	}
	s.trees.of = s
	s.root, _ = s.text.Tree(s.file) // the text was read before, so that there is no error
}

// dropTree drops the document, which takes much memory, and keeps the positions of the
// given fields.
func (s *source) dropTree(keep ...path) {
	if s.text != nil {
		return
	}
	s.marks = make(map[string]strict.Position, len(keep))
	for _, p := range keep {
		s.marks[p.String()] = s.position(p)
	}
	s.root, s.all = nil, nil
}

// fileLine returns the file and line of the object.
func (s *source) fileLine() string {
	if s == nil || s.file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.file, s.start.Line)
}

// reporter adds errors about one object to a list.
type reporter struct {
	src  *source
	errs *Errors
}

func (r reporter) errorf(p path, format string, args ...any) {
	e := Error{Path: p.String(), Message: fmt.Sprintf(format, args...)}
	if r.src != nil {
		at := r.src.position(p)
		e.File, e.Line, e.Column = r.src.file, at.Line, at.Column
	}
	*r.errs = append(*r.errs, e)
}

// report adds the errors among the notes of a conversion.
func (r reporter) report(notes convert.Notes) {
	for _, n := range notes {
		if n.Severity == convert.Invalid {
			r.errorf(n.Path, "%s", n.Message)
		}
	}
}
