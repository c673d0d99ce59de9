// Package field has paths to fields of API objects, for error messages.
package field

import (
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/phrase"
)

// Path is the path from the root of an object to one of its fields. Each step is a
// string, which names a field or a key of a map, or an int, which is the index of
// an entry of a list.
type Path []any

// Add returns the path with the steps appended. The receiver does not change.
func (p Path) Add(steps ...any) Path {
	return append(p[:len(p):len(p)], steps...)
}

// String formats the path as in spec.tasks[0].resources["nvidia.com/gpu"].
func (p Path) String() string {
	var w strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case int:
			w.WriteString("[" + strconv.Itoa(s) + "]")
		case string:
			switch {
			case !isPlain(s):
				w.WriteString("[" + phrase.Quote(s) + "]")
			case w.Len() > 0:
				w.WriteString("." + s)
			default:
				w.WriteString(s)
			}
		}
	}
	return w.String()
}

// isPlain reports whether the name needs no quotes between dots. A long name has quotes, which
// cut it off.
func isPlain(s string) bool {
	const longest = 63
	if len(s) > longest {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != ""
}
