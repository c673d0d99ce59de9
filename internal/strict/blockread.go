package strict

import "bytes"

// maxBlockDepth limits how deep the values of a document are nested, so that the limit for
// documents (maxDepth) is never met.
const maxBlockDepth = maxJSONDepth

// blockReader rewrites a document of YAML as JSON. It reads the YAML that kubectl prints and that
// most people write: objects and lists in blocks, texts with and without quotes, texts with |, and
// objects and lists in braces and brackets that are in one line. It accepts only what the library
// of YAML reads in the same way. For anything else, and for any mistake, bad is set, and the
// library has to read the document.
type blockReader struct {
	blockLines
	depth  int
	out    []byte // the JSON
	folded []byte // buffer of texts with several lines

	entries []entry // of the document

	inList bool // the next value is the list under listKey
	listed bool // there was such a list
	items  []item
	odd    bool // the list has entries that are not objects
}

// document reads a document that begins in the line. It returns nil if the document is empty, and
// false if the library has to read it. The document is valid until the next call.
func (b *blockReader) document(doc []byte, line int) (*JSON, bool) {
	*b = blockReader{blockLines: blockLines{data: doc, line: line}, out: b.out[:0], folded: b.folded[:0], entries: b.entries}
	if isMarker(doc) {
		b.at = len("---")
		b.endLine()
	}
	b.next()
	if b.column < 0 {
		return nil, !b.bad
	}
	start := Position{b.line + 1, b.column + 1}
	switch c := doc[b.at]; {
	case b.isEntry():
		b.fail()
	case c == '{':
		b.scalar(-1)
	default:
		b.mapping(b.column)
	}
	if b.bad || b.column >= 0 {
		return nil, false
	}
	if b.odd {
		b.items = nil
	}
	s := scanner{data: b.out}
	b.entries = s.read(b.entries).entries
	if s.bad {
		return nil, false
	}
	return &JSON{Position: start, text: b.out, entries: b.entries, items: b.items, block: &block{doc, 0, line}}, true
}

// enter begins an object or a list.
func (b *blockReader) enter(c byte) {
	if b.depth++; b.depth > maxBlockDepth {
		b.fail()
	}
	b.out = append(b.out, c)
}

func (b *blockReader) leave(c byte) {
	b.depth--
	b.out = append(b.out, c)
}

// separate writes a comma before each entry except the first.
func (b *blockReader) separate() {
	if last := b.out[len(b.out)-1]; last != '{' && last != '[' {
		b.out = append(b.out, ',')
	}
}

// mapping reads an object with keys at the column.
func (b *blockReader) mapping(column int) {
	b.inList = false
	b.enter('{')
	for b.column == column {
		b.separate()
		key, ok := b.key()
		if !ok {
			b.fail()
			return
		}
		b.inList = b.depth == 1 && !b.listed && string(key) == listKey
		b.listed = b.listed || b.inList
		b.valueOf(column)
		b.inList = false
	}
	if b.column > column {
		b.fail()
	}
	b.leave('}')
}

// valueOf reads the value of a key at the column.
func (b *blockReader) valueOf(column int) {
	b.spaces()
	if !b.atEnd() {
		b.scalar(column)
		return
	}
	b.skipLine()
	b.next()
	switch {
	case b.column > column:
		b.value(column)
	case b.column == column && b.isEntry(): // a list may be as far left as its key
		b.list(column)
	default:
		b.out = append(b.out, "null"...)
	}
}

// value reads a value at the beginning of its text. Indent is the column of the object or list
// that the value is in.
func (b *blockReader) value(indent int) {
	switch {
	case b.isEntry():
		b.list(b.column)
	case b.atKey():
		b.mapping(b.column)
	default:
		b.scalar(indent)
	}
}

// list reads a list with entries at the column.
func (b *blockReader) list(column int) {
	marked := b.inList
	b.inList = false
	b.enter('[')
	for b.column == column && b.isEntry() {
		b.separate()
		b.at++
		if b.spaces(); b.atEnd() {
			b.skipLine()
			b.next()
		} else {
			b.column = b.at - b.lineStart
		}
		switch {
		case b.column <= column:
			b.out = append(b.out, "null"...)
			b.odd = b.odd || marked
		case marked:
			b.item(column)
		default:
			b.value(column)
		}
	}
	if b.column > column {
		b.fail()
	}
	b.leave(']')
}

// item reads an entry of the list under listKey.
func (b *blockReader) item(indent int) {
	x := item{Position{b.line + 1, b.column + 1}, len(b.out), 0, block{column: b.column, line: b.line}}
	from := b.at
	if b.value(indent); b.bad {
		return
	}
	x.to = len(b.out)
	if x.block.text = b.data[from:]; b.column >= 0 {
		x.block.text = b.data[from:b.lineStart]
	}
	b.odd = b.odd || b.out[x.from] != '{'
	b.items = append(b.items, x)
}

// key reads and writes a key and the colon. It reports false if there is no key here.
func (b *blockReader) key() ([]byte, bool) {
	from, to, after, ok := b.findKey()
	if !ok || !b.writeKey(b.data[from:to], from > b.at) {
		return nil, false
	}
	b.at = after
	return b.data[from:to], true
}

// writeKey reports false if the key is long or would need an escape sequence, or is null, or
// merges another object.
func (b *blockReader) writeKey(key []byte, quoted bool) bool {
	switch string(key) {
	case "~", "null", "Null", "NULL", "<<":
		if !quoted {
			return false
		}
	}
	if len(key) > maxJSONKey || string(key) == "<<" || bytes.IndexByte(key, '"') >= 0 || bytes.IndexByte(key, '\\') >= 0 || bytes.IndexByte(key, '\t') >= 0 {
		return false
	}
	b.out = append(append(append(b.out, '"'), key...), '"', ':')
	return true
}
