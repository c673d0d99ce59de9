package strict

import (
	"bytes"
	"reflect"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// JSON is a value of a file that is written as JSON, or of one in YAML that was rewritten as JSON.
// It is decoded without a tree, which takes many times the memory and the time.
type JSON struct {
	Position // of the value
	text     []byte
	entries  []entry // of an object; nil after the value was visited
	block    *block  // what the file has, if that is YAML; text is then nil after the value was visited
	items    []item  // of a document in YAML
}

// entry is one field of an object.
type entry struct {
	key   []byte
	value JSON
}

// ParseJSON returns the object of a file. It reports false if the file is anything but one
// object in plain JSON: then it is YAML, or it has mistakes. Documents reads such files, and
// reports the mistakes.
func ParseJSON(data []byte) (*JSON, bool) {
	if len(data) > MaxSize || checkEncoding(data) != nil || hasBreaks(data) {
		return nil, false
	}
	s := scanner{data: data}
	if s.peek() != '{' {
		return nil, false
	}
	out := s.read(nil)
	return &out, s.peek() == 0 && !s.bad
}

// DecodeJSON decodes an object in JSON into the Go value that into points to, as Decode does.
// Errors have no positions.
func DecodeJSON(data []byte, into any, o Options) (errs Errors) {
	if object, ok := ParseJSON(data); ok && object.Decode(into, o) {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero()
	var decoded Errors
	errs = Documents("", data, func(n *yaml.Node) { decoded = append(decoded, Decode(n, into, o)...) })
	return append(errs, decoded...)
}

// read reads a value and, if it is an object, its entries, for which it uses the buffer.
func (s *scanner) read(buffer []entry) JSON {
	c := s.peek()
	out := JSON{Position: s.position(), entries: buffer[:0]}
	from := s.at
	if c != '{' {
		s.value()
	} else {
		s.object(func(key []byte) {
			s.peek()
			at, start := s.position(), s.at
			s.value()
			if !s.bad {
				out.entries = append(out.entries, entry{key, JSON{Position: at, text: s.data[start:s.at]}})
			}
		})
	}
	if !s.bad {
		out.text = s.data[from:s.at]
	}
	return out
}

// hasBreaks reports whether the text has line breaks of Unicode, which YAML folds in strings, or
// marks of the byte order or characters that YAML does not allow, or is UTF-16.
func hasBreaks(data []byte) bool {
	if !utf8.Valid(data) {
		return true
	}
	return bytes.Contains(data, []byte("\ufeff")) || bytes.Contains(data, []byte("\u0085")) || bytes.Contains(data, []byte("\u2028")) || bytes.Contains(data, []byte("\u2029")) ||
		bytes.Contains(data, []byte("\ufffe")) || bytes.Contains(data, []byte("\uffff"))
}

// entry returns the value of a key, nil if the object does not have it.
func (o *JSON) entry(key string) *JSON {
	for i := range o.entries {
		if string(o.entries[i].key) == key {
			return &o.entries[i].value
		}
	}
	return nil
}

// Text returns the value of a key of an object if it is a string, and "" otherwise.
func (o *JSON) Text(key string) string {
	v := o.entry(key)
	if v == nil || v.text[0] != '"' {
		return ""
	}
	return unquote(v.text[1 : len(v.text)-1])
}

// Items calls visit with each value of the list under the key. It reports false if there is no
// such list.
func (o *JSON) Items(key string, visit func(*JSON)) bool {
	list := o.entry(key)
	if list == nil || list.text[0] != '[' {
		return false
	}
	if o.block != nil {
		return o.itemsOfBlock(list.text, visit)
	}
	s := scanner{data: list.text, line: list.Line - 1, lineStart: 1 - list.Column}
	var buffer []entry
	s.list(func() {
		item := s.read(buffer)
		visit(&item)
		buffer, item.entries = item.entries, nil
	})
	return true
}

// Tree returns the tree of the object, with the positions that it has in the file.
func (o *JSON) Tree(file string) (root *yaml.Node, errs Errors) {
	if o.block != nil {
		return o.block.tree(file)
	}
	errs = Documents(file, o.text, func(n *yaml.Node) { root = n })
	if root != nil {
		o.shift(root)
	}
	return root, errs
}

func (o *JSON) shift(n *yaml.Node) {
	if n.Line == 1 {
		n.Column += o.Column - 1
	}
	n.Line += o.Line - 1
	for _, c := range n.Content {
		o.shift(c)
	}
}

// unquote returns the text of a string that the scanner has read.
func unquote(text []byte) string {
	at := bytes.IndexByte(text, '\\')
	if at < 0 {
		return string(text)
	}
	out := append(make([]byte, 0, len(text)), text[:at]...)
	for i := at; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		i++
		switch c := text[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := codePoint(text[i:]) // the scanner has checked it
			out = utf8.AppendRune(out, r)
			i += 4
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
