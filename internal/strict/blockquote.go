package strict

import (
	"bytes"
	"encoding/hex"
)

// appendQuoted appends the text as a string of JSON.
func appendQuoted(out, text []byte) []byte {
	return append(appendEscaped(append(out, '"'), text), '"')
}

// appendEscaped appends the text as a part of a string of JSON.
func appendEscaped(out, text []byte) []byte {
	from := 0
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, text[from:i]...)
		from = i + 1
		switch c {
		case '\n':
			out = append(out, '\\', 'n')
		case '\t':
			out = append(out, '\\', 't')
		default:
			out = append(out, '\\', c)
		}
	}
	return append(out, text[from:]...)
}

// single reads a text in single quotes.
func (b *blockReader) single() {
	data := b.data
	b.folded = b.folded[:0]
	for from := b.at + 1; ; {
		n := bytes.IndexByte(data[from:], '\'')
		if n < 0 {
			b.fail()
			return
		}
		part, end := data[from:from+n], from+n+1
		again := end < len(data) && data[end] == '\''
		if len(b.folded) == 0 && !again && bytes.IndexByte(part, '\n') < 0 && bytes.IndexByte(part, '\t') < 0 {
			b.out = appendQuoted(b.out, part)
			b.at = end
			return
		}
		b.folded = append(b.folded, part...)
		if !again {
			b.at = end
			break
		}
		b.folded = append(b.folded, '\'')
		from = end + 1
	}
	if text, ok := b.fold(b.folded); ok {
		b.out = appendQuoted(b.out, text)
	}
}

// fold folds the line breaks of a text in single quotes, in place.
func (b *blockReader) fold(text []byte) ([]byte, bool) {
	if bytes.IndexByte(text, '\t') >= 0 {
		b.fail()
		return nil, false
	}
	out := text[:0]
	for i := 0; i < len(text); i++ {
		if text[i] != '\n' {
			out = append(out, text[i])
			continue
		}
		out = bytes.TrimRight(out, " ")
		n := 0
		for ; i < len(text) && (text[i] == '\n' || text[i] == ' '); i++ {
			if text[i] == '\n' {
				n++
			}
		}
		i--
		b.line += n
		out = appendFold(out, n)
	}
	return out, true
}

// escapes are the characters that follow a backslash in double quotes, with what they are in JSON.
var escapes = [256]string{
	'"': `\"`, '\\': `\\`, 'b': `\b`, 'f': `\f`, 'n': `\n`, 'r': `\r`, 't': `\t`, ' ': " ", '\'': "'",
	'0': `\u0000`, 'a': `\u0007`, 'v': `\u000b`, 'e': `\u001b`, 'N': `\u0085`, '_': `\u00a0`, 'L': `\u2028`, 'P': `\u2029`,
}

// double reads a text in double quotes.
func (b *blockReader) double() {
	b.out = append(b.out, '"')
	keep := len(b.out) // spaces after it are left out before a line break
	for i := b.at + 1; i < len(b.data); i++ {
		switch c := b.data[i]; c {
		case '"':
			b.out = append(b.out, '"')
			b.at = i + 1
			return
		case '\t':
			b.fail()
			return
		case ' ':
			b.out = append(b.out, ' ')
			continue
		case '\n':
			b.out = b.out[:keep]
			i = b.breaks(i)
		case '\\':
			if i++; i < len(b.data) && b.data[i] == '\n' {
				b.line++
				i = b.escapedBreak(i + 1)
			} else if i = b.escape(i); b.bad {
				return
			}
		default:
			b.out = append(b.out, c)
		}
		keep = len(b.out)
	}
	b.fail()
}

// breaks writes the line breaks at the index, with the spaces around them, and returns the index
// of the last of these characters.
func (b *blockReader) breaks(at int) int {
	n := 0
	for ; at < len(b.data) && (b.data[at] == ' ' || b.data[at] == '\n'); at++ {
		if b.data[at] == '\n' {
			n++
		}
	}
	b.line += n
	if n == 1 {
		b.out = append(b.out, ' ')
	}
	for ; n > 1; n-- {
		b.out = append(b.out, '\\', 'n')
	}
	return at - 1
}

// escapedBreak is like breaks, after a line break that is escaped and so is left out.
func (b *blockReader) escapedBreak(at int) int {
	for ; at < len(b.data) && (b.data[at] == ' ' || b.data[at] == '\n'); at++ {
		if b.data[at] == '\n' {
			b.line++
			b.out = append(b.out, '\\', 'n')
		}
	}
	return at - 1
}

// escape writes the character of an escape sequence, without the backslash, and returns the index
// of its last character.
func (b *blockReader) escape(at int) int {
	if at >= len(b.data) {
		b.fail()
		return at
	}
	rest := b.data[at:]
	switch text := escapes[rest[0]]; {
	case text != "":
		b.out = append(b.out, text...)
		return at
	case rest[0] == 'u' && validEscape(rest):
		b.out = append(append(b.out, '\\'), rest[:5]...)
		return at + 4
	case rest[0] == 'x' && len(rest) > 2:
		if _, err := hex.DecodeString(string(rest[1:3])); err == nil {
			b.out = append(append(b.out, `\u00`...), rest[1:3]...)
			return at + 2
		}
	}
	b.fail()
	return at
}
