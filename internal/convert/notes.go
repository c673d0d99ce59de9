// Package convert turns single API objects, of Berth and of Kubernetes, into cluster
// objects. It checks each field, and returns what is wrong, ignored or unusual as notes.
//
// It knows no files and no positions in them: package manifest adds these. A conversion
// does not modify its input, so that objects of informers, which are shared, can be
// converted. What depends on other objects of the cluster is passed as an Environment.
// Nothing is decided here: whether a job fits a node is decided by plugins.
package convert

import (
	"fmt"

	"github.com/berth-project/berth/internal/field"
)

// Severity says what a note means for the use of the object.
type Severity int

const (
	// Invalid: the object is wrong, and what it was converted to must not be used.
	// The message says what is wrong, and what to write instead.
	Invalid Severity = iota
	// Ignored: the object is used, and the field is not, because Berth does not
	// support it or cannot make sense of it.
	Ignored
	// Inactive: the object takes no part in scheduling in its present state.
	Inactive
)

// Note is something that a user should know about how an object was read.
type Note struct {
	Severity Severity
	Path     field.Path
	// Message of an invalid object is a sentence about the field. Other messages are
	// phrases that follow a number of objects, as in "3 pods with a hostPort, …", so
	// that objects with the same note can be counted.
	Message string
	// Detail is what differs between objects with the same message, "" if nothing does.
	Detail string
}

// Notes are the notes about one object.
type Notes []Note

// Invalid reports whether the object must not be used.
func (n Notes) Invalid() bool {
	for i := range n {
		if n[i].Severity == Invalid {
			return true
		}
	}
	return false
}

type path = field.Path

// reporter collects the notes about one object.
type reporter struct{ notes *Notes }

func (r reporter) note(n Note) { *r.notes = append(*r.notes, n) }

// errorf notes that the object is invalid.
func (r reporter) errorf(at path, format string, args ...any) {
	r.note(Note{Invalid, at, fmt.Sprintf(format, args...), ""})
}
