package strict

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// listKey is the key of the list in a document of which each entry is an object of its own.
const listKey = "items"

// Blocks calls visit with each document of a file in YAML that is not empty. A document in the
// plain YAML that blockReader reads is rewritten as JSON, which is many times faster than to make
// a tree. Of any other document only Tree returns something. What visit gets is valid until visit
// returns, except that Tree may be called later.
//
// Blocks reports false if Documents has to read the file. It may have called visit before.
func Blocks(data []byte, visit func(*JSON)) bool {
	if len(data) > MaxSize || checkEncoding(data) != nil || hasBreaks(data) {
		return false
	}
	if bytes.IndexByte(data, '\r') >= 0 {
		if data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")); bytes.IndexByte(data, '\r') >= 0 {
			return false
		}
	}
	if bytes.HasPrefix(data, []byte("...")) || bytes.Contains(data, []byte("\n...")) {
		return false // the end of a document, after which directives may follow
	}
	var r blockReader
	for line, rest := 0, data; len(rest) > 0; {
		doc := rest[:endOfDocument(rest)]
		rest = rest[len(doc):]
		switch o, ok := r.document(doc, line); {
		case ok && o == nil: // it is empty
		case ok:
			visit(o)
			o.text, o.entries, o.items = nil, nil, nil
		case len(doc) == len(data), hasAnchor(doc):
			return false // nothing is gained, or later documents may have aliases of the anchor
		default:
			visit(&JSON{Position: Position{line + 1, 1}, block: &block{doc, 0, line}})
		}
		line += bytes.Count(doc, []byte("\n"))
	}
	return true
}

// endOfDocument returns the index of the line with --- that begins the next document.
func endOfDocument(data []byte) int {
	for at := 0; ; {
		next := bytes.Index(data[at:], []byte("\n---"))
		if next < 0 {
			return len(data)
		}
		if at += next + 1; isMarker(data[at:]) {
			return at
		}
	}
}

// isMarker reports whether the text begins with --- and a blank.
func isMarker(text []byte) bool {
	return bytes.HasPrefix(text, []byte("---")) && (len(text) == 3 || text[3] == ' ' || text[3] == '\n' || text[3] == '\t')
}

// hasAnchor reports whether the text may have an anchor. The library keeps anchors for all later
// documents of a file.
func hasAnchor(text []byte) bool {
	for i, c := range text {
		if c == '&' && i+1 < len(text) && bytes.IndexByte([]byte("& \n"), text[i+1]) < 0 {
			return true
		}
	}
	return false
}

// block is a part of a file in YAML: a document, or an entry of a list.
type block struct {
	text   []byte
	column int // of the first character, counted from 0
	line   int // counted from 0
}

// tree returns the tree of the block, with the positions that it has in the file.
func (b *block) tree(file string) (root *yaml.Node, errs Errors) {
	text := b.text
	if b.column > 0 { // the first line gets the indentation of the others
		text = append(bytes.Repeat([]byte(" "), b.column), text...)
	}
	errs = Documents(file, text, func(n *yaml.Node) { root = n })
	if root != nil {
		(&JSON{Position: Position{b.line + 1, 1}}).shift(root)
	}
	return root, errs
}

// item is an entry of the list under listKey.
type item struct {
	Position
	from, to int // in the JSON
	block    block
}

// itemsOfBlock is Items for a document in YAML. A list in brackets, and a list with entries other
// than objects, is read as a tree.
func (o *JSON) itemsOfBlock(list []byte, visit func(*JSON)) bool {
	var buffer []entry
	for i := range o.items {
		x := &o.items[i]
		s := scanner{data: o.text[x.from:x.to]}
		buffer = s.read(buffer).entries
		one := &JSON{Position: x.Position, text: s.data, entries: buffer, block: &x.block}
		visit(one)
		one.text, one.entries = nil, nil
	}
	return len(o.items) > 0 || string(list) == "[]"
}
