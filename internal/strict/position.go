package strict

import (
	"github.com/berth-project/berth/internal/field"
	"go.yaml.in/yaml/v3"
)

// Position is a place in a file. Lines and columns count from 1.
type Position struct{ Line, Column int }

// Positions finds the positions of the fields of a document. It indexes large objects, so that
// many errors about one object do not each take a search through all of its fields.
type Positions struct {
	root    *yaml.Node
	indexes map[*yaml.Node]index
}

// PositionsOf returns the positions of the fields of the document with the root.
func PositionsOf(root *yaml.Node) *Positions {
	return &Positions{root: root, indexes: map[*yaml.Node]index{}}
}

// Of returns the position of the field or, if it is not in the file, of the innermost object or
// list on its path that is.
func (p *Positions) Of(at field.Path) Position {
	n := locate(p.root, at, p.entry)
	return Position{n.Line, n.Column}
}

// indexed is the number of fields from which an object is indexed.
const indexed = 64

// index is the fields of an object by name.
type index struct {
	entries map[string]*yaml.Node
	merges  bool // the object has merged fields, which are not in entries
}

// entry is like Entry.
func (p *Positions) entry(n *yaml.Node, key string) *yaml.Node {
	if len(n.Content) < 2*indexed {
		return Entry(n, key)
	}
	x, ok := p.indexes[n]
	if !ok {
		x = indexOf(n)
		p.indexes[n] = x
	}
	if v := x.entries[key]; v != nil || !x.merges {
		return v
	}
	return Entry(n, key)
}

func indexOf(n *yaml.Node) index {
	out := index{entries: make(map[string]*yaml.Node, len(n.Content)/2)}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := Resolve(n.Content[i])
		switch {
		case k.Kind != yaml.ScalarNode:
		case k.ShortTag() == tagMerge:
			out.merges = true
		case out.entries[k.Value] == nil:
			out.entries[k.Value] = n.Content[i+1]
		}
	}
	return out
}

// Locate returns the value at the path or, if it is not in the file, the last value on the
// path that is.
func Locate(n *yaml.Node, at field.Path) *yaml.Node { return locate(n, at, Entry) }

func locate(n *yaml.Node, at field.Path, entry func(*yaml.Node, string) *yaml.Node) *yaml.Node {
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
