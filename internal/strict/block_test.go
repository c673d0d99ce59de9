package strict

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// compareBlocks fails if documents that are rewritten as JSON have other values or positions than
// those that the library reads, or if the library does not read the file. It returns how many
// documents were rewritten.
func compareBlocks(t *testing.T, data []byte) int {
	t.Helper()
	type part struct {
		*JSON
		text  string // of the JSON, which is nil after the visit
		items []part
	}
	var docs []part
	ok := Blocks(data, func(o *JSON) {
		d := part{JSON: o, text: string(o.text)}
		o.Items(listKey, func(x *JSON) { d.items = append(d.items, part{JSON: x, text: string(x.text)}) })
		docs = append(docs, d)
	})
	if !ok {
		return 0
	}
	rewritten := 0
	for _, d := range docs {
		if d.text != "" {
			rewritten++
		} else if _, errs := d.Tree("f"); len(errs) > 0 {
			return 0 // the caller reads the whole file as trees
		}
	}
	var roots []*yaml.Node
	if errs := Documents("f", data, func(n *yaml.Node) { roots = append(roots, n) }); len(errs) > 0 {
		t.Fatalf("%q was rewritten, and the library reports %v", data, errs)
	}
	compare := func(p part, n *yaml.Node) {
		t.Helper()
		if p.text != "" {
			s := scanner{data: []byte(p.text)}
			if err := compareValue(&s, n); err != "" || s.bad || s.at != len(p.text) {
				t.Fatalf("%q became %s: %s", data, p.text, err)
			}
			if p.Position != (Position{n.Line, n.Column}) {
				t.Fatalf("a part of %q is at %v, want %d:%d", data, p.Position, n.Line, n.Column)
			}
		}
		root, errs := p.Tree("f")
		if len(errs) > 0 {
			t.Fatalf("a part of %q has no tree: %v", data, errs)
		}
		if diff := compareTrees(root, n); diff != "" {
			t.Fatalf("a tree of %q differs: %s", data, diff)
		}
	}
	i := 0
	for _, d := range docs {
		if root, _ := d.Tree("f"); root == nil {
			continue // it is null
		}
		if i >= len(roots) {
			t.Fatalf("%q has %d documents, want %d", data, i+1, len(roots))
		}
		compare(d, roots[i])
		if len(d.items) > 0 {
			list := Entry(roots[i], listKey).Content
			if len(list) != len(d.items) {
				t.Fatalf("%q has %d items, want %d", data, len(d.items), len(list))
			}
			for j, x := range d.items {
				compare(x, list[j])
			}
		}
		i++
	}
	if i != len(roots) {
		t.Fatalf("%q has %d documents, want %d", data, i, len(roots))
	}
	return rewritten
}

// compareValue compares a value of JSON with that of a tree.
func compareValue(s *scanner, n *yaml.Node) string {
	differ := ""
	fail := func(format string, args ...any) {
		if differ == "" {
			differ = fmt.Sprintf(format, args...)
		}
	}
	i := 0
	next := func() *yaml.Node {
		if i == len(n.Content) {
			fail("there is one value too many")
			return &yaml.Node{}
		}
		i++
		return n.Content[i-1]
	}
	switch c := s.peek(); {
	case c == '{' && n.Kind == yaml.MappingNode:
		s.object(func(key []byte) {
			k := next()
			if k.Kind != yaml.ScalarNode || k.Value != string(key) || k.ShortTag() == tagMerge || IsNull(k) {
				fail("the key %q, want %q", key, k.Value)
			}
			if d := compareValue(s, next()); d != "" {
				fail("%s", d)
			}
		})
	case c == '[' && n.Kind == yaml.SequenceNode:
		s.list(func() {
			if d := compareValue(s, next()); d != "" {
				fail("%s", d)
			}
		})
	case n.Kind != yaml.ScalarNode:
		fail("%c, want %s", c, Describe(n))
		s.value()
	case c == '"':
		if text := unquote(s.str()); text != n.Value || n.ShortTag() != tagString && n.ShortTag() != tagTimestamp {
			fail("%q, want %q (%s)", text, n.Value, n.ShortTag())
		}
	case c == 'n':
		if s.word(); n.ShortTag() != tagNull {
			fail("null, want %q", n.Value)
		}
	case c == 't' || c == 'f':
		if (s.word() == 't') != strings.EqualFold(n.Value, "true") || n.ShortTag() != tagBool {
			fail("%c, want %q", c, n.Value)
		}
	default:
		if text := s.number(); string(text) != n.Value || n.ShortTag() != tagInt && n.ShortTag() != tagFloat {
			fail("%s, want %q (%s)", text, n.Value, n.ShortTag())
		}
	}
	if i != len(n.Content) {
		fail("%d values, want %d", i, len(n.Content))
	}
	return differ
}

func compareTrees(a, b *yaml.Node) string {
	if a.Kind != b.Kind || a.ShortTag() != b.ShortTag() || a.Value != b.Value || a.Line != b.Line || a.Column != b.Column || len(a.Content) != len(b.Content) {
		return fmt.Sprintf("%s at %d:%d, want %s at %d:%d", Describe(a), a.Line, a.Column, Describe(b), b.Line, b.Column)
	}
	for i := range a.Content {
		if d := compareTrees(a.Content[i], b.Content[i]); d != "" {
			return d
		}
	}
	return ""
}
