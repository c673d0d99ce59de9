package strict

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/phrase"
	"go.yaml.in/yaml/v3"
)

// Tags of scalars in YAML.
const (
	tagString    = "!!str"
	tagInt       = "!!int"
	tagFloat     = "!!float"
	tagBool      = "!!bool"
	tagNull      = "!!null"
	tagTimestamp = "!!timestamp"
	tagMerge     = "!!merge"
)

// Resolve returns the value to which an alias refers, and any other value as it is.
func Resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// IsNull reports whether the value is null or missing.
func IsNull(n *yaml.Node) bool {
	return n.Kind == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == tagNull
}

// Entry returns the value of a key of a mapping, or nil if the mapping does not have
// the key. Keys of the mapping itself take precedence over merged keys (<<).
func Entry(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := Resolve(n.Content[i]); k.Kind == yaml.ScalarNode && k.Value == key && k.ShortTag() != tagMerge {
			return n.Content[i+1]
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() != tagMerge {
			continue
		}
		from := Resolve(n.Content[i+1])
		sources := []*yaml.Node{from}
		if from.Kind == yaml.SequenceNode {
			sources = from.Content
		}
		for _, s := range sources {
			if s = Resolve(s); s.Kind == yaml.MappingNode {
				if v := Entry(s, key); v != nil {
					return v
				}
			}
		}
	}
	return nil
}

// Text returns the value of a key of a mapping if it is a scalar, and "" otherwise.
func Text(n *yaml.Node, key string) string {
	if v := Entry(n, key); v != nil {
		if v = Resolve(v); v.Kind == yaml.ScalarNode && !IsNull(v) {
			return v.Value
		}
	}
	return ""
}

// Describe returns how a message refers to a value: "a list", "the number 5".
func Describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case tagInt, tagFloat:
		return "the number " + phrase.Clip(n.Value)
	case tagBool:
		return phrase.Clip(n.Value)
	case tagNull:
		return "nothing"
	}
	return phrase.Quote(n.Value)
}

// toJSON returns the tree as JSON, for types that decode nothing else.
func toJSON(n *yaml.Node) ([]byte, error) {
	v, err := generic(n)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// generic turns a tree into maps, lists and scalars. Numbers that are valid JSON
// keep their spelling, so that 0.1 stays 0.1.
func generic(n *yaml.Node) (any, *Error) {
	n = Resolve(n)
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		var failed *Error
		errs := pairs(n, func(key, value *yaml.Node) {
			v, err := generic(value)
			if err != nil && failed == nil {
				failed = err
			}
			out[key.Value] = v
		})
		if failed == nil && len(errs) > 0 {
			failed = &errs[0]
		}
		return out, failed
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := generic(c)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	switch n.ShortTag() {
	case tagNull:
		return nil, nil
	case tagBool:
		return strings.EqualFold(n.Value, "true"), nil
	case tagInt, tagFloat:
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil
		}
		if i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64); err == nil {
			return i, nil
		}
	}
	return n.Value, nil
}

// pairs calls visit with the entries of a mapping: first its own entries, in the order in
// which they are written, then the merged entries (<<) with keys that it does not have
// itself. A key that is not a scalar, or that is written twice, is an error.
func pairs(n *yaml.Node, visit func(key, value *yaml.Node)) Errors {
	var errs Errors
	seen := make(map[string]int, len(n.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := Resolve(n.Content[i]), n.Content[i+1]
		fail := func(message string) {
			errs = append(errs, Error{Line: key.Line, Column: key.Column, Message: message})
		}
		switch {
		case key.Kind != yaml.ScalarNode || IsNull(key):
			fail("want a field name, have " + Describe(key))
			continue
		case key.ShortTag() == tagMerge:
			merged = append(merged, value)
			continue
		}
		if line, twice := seen[key.Value]; twice {
			fail("duplicate key " + phrase.Quote(key.Value) + ", first written in line " + strconv.Itoa(line))
			continue
		}
		seen[key.Value] = key.Line
		visit(key, value)
	}
	for _, m := range merged {
		m = Resolve(m)
		sources := []*yaml.Node{m}
		if m.Kind == yaml.SequenceNode {
			sources = m.Content
		}
		for _, s := range sources {
			if s = Resolve(s); s.Kind != yaml.MappingNode {
				errs = append(errs, Error{Line: s.Line, Column: s.Column, Message: "<<: want an object to merge, have " + Describe(s)})
				continue
			}
			errs = append(errs, pairs(s, func(key, value *yaml.Node) {
				if _, own := seen[key.Value]; !own {
					seen[key.Value] = key.Line
					visit(key, value)
				}
			})...)
		}
	}
	return errs
}
