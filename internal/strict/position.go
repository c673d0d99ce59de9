package strict

import (
	"github.com/berth-project/berth/internal/field"
	"go.yaml.in/yaml/v3"
)

// Position is a place in a file. Lines and columns count from 1.
type Position struct{ Line, Column int }

// PositionOf returns the position of the field or, if it is not in the file, of the
// innermost object or list on its path that is.
func PositionOf(root *yaml.Node, at field.Path) Position {
	n := Locate(root, at)
	return Position{n.Line, n.Column}
}

// Locate returns the value at the path or, if it is not in the file, the last value on the
// path that is.
func Locate(n *yaml.Node, at field.Path) *yaml.Node {
	for _, step := range at {
		n = Resolve(n)
		var next *yaml.Node
		switch s := step.(type) {
		case int:
			switch {
			case n.Kind == yaml.SequenceNode && s < len(n.Content):
				next = n.Content[s]
			case n.Kind == yaml.MappingNode && s == 0:
				continue // a single entry may be written without its list
			}
		case string:
			if n.Kind == yaml.MappingNode {
				next = Entry(n, s)
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}
