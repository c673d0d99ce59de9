package strict

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// scalar reads a value that is not a list or an object in a block, and moves to the next text. The
// lines that continue the value are indented by more than indent.
func (b *blockReader) scalar(indent int) {
	switch b.data[b.at] {
	case '"':
		b.double()
	case '\'':
		b.single()
	case '|':
		b.literal(indent)
		return
	case '[', '{':
		b.flow()
	default:
		b.plain(indent)
		return
	}
	b.endLine()
	b.next()
}

// plain reads a text without quotes, or a number, a truth value or null.
func (b *blockReader) plain(indent int) {
	if !b.plainStart(b.at) {
		b.fail()
		return
	}
	line := b.line
	text, comment := b.plainLine()
	if comment {
		b.next()
		b.writePlain(text)
		return
	}
	b.nextLine()
	if b.column <= indent || b.data[b.at] == '#' {
		b.comments()
		b.writePlain(text)
		return
	}
	b.folded = append(b.folded[:0], text...)
	for !comment && b.column > indent && b.data[b.at] != '#' {
		b.folded = appendFold(b.folded, b.line-line)
		line = b.line
		text, comment = b.plainLine()
		b.folded = append(b.folded, text...)
		b.nextLine()
	}
	b.comments()
	b.writePlain(b.folded)
}

// appendFold appends what n line breaks in a text stand for: one is a space, and each further one
// is a line break.
func appendFold(text []byte, n int) []byte {
	if n == 1 {
		return append(text, ' ')
	}
	for ; n > 1; n-- {
		text = append(text, '\n')
	}
	return text
}

// plainLine reads the rest of a line, and moves to the next one. It reports whether the line ends
// with a comment.
func (b *blockReader) plainLine() (text []byte, comment bool) {
	data, from := b.data, b.at
	i := from
	for ; i < len(data) && data[i] != '\n'; i++ {
		switch c := data[i]; {
		case c == ':' && b.isBlank(i+1), c == '\t':
			b.fail()
			return nil, false
		case c == '#' && data[i-1] == ' ':
			b.at = i
			b.skipLine()
			return bytes.TrimRight(data[from:i], " "), true
		}
	}
	b.at = i
	b.skipLine()
	return bytes.TrimRight(data[from:i], " "), false
}

// writePlain writes what the library reads from a text without quotes.
func (b *blockReader) writePlain(text []byte) {
	if b.bad {
		return
	}
	switch kindOfPlain(text) {
	case plainText:
		b.out = appendQuoted(b.out, text)
	case plainNumber:
		b.out = append(b.out, text...)
	case plainNull:
		b.out = append(b.out, "null"...)
	case plainTrue:
		b.out = append(b.out, "true"...)
	case plainFalse:
		b.out = append(b.out, "false"...)
	case plainOther:
		b.fail()
	}
}

// plainKind is what the library reads from a text without quotes.
type plainKind int

const (
	plainText plainKind = iota
	plainNumber
	plainNull
	plainTrue
	plainFalse
	plainOther // a number that JSON does not have, such as 0x1F, or << that merges
)

func kindOfPlain(text []byte) plainKind {
	const longest = 18 // digits of a number that surely is an int64
	switch c := text[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
		switch {
		case !mayBeNumber(text):
			return plainText
		case len(text) <= longest && isDecimal(text):
			return plainNumber
		case isNumber(string(text)):
			return plainOther
		}
	case c == '<' && string(text) == "<<":
		return plainOther
	case len(text) <= len("false"):
		switch string(text) {
		case "~", "null", "Null", "NULL":
			return plainNull
		case "true", "True", "TRUE":
			return plainTrue
		case "false", "False", "FALSE":
			return plainFalse
		}
	}
	return plainText
}

// mayBeNumber reports whether the text has only characters that numbers can have.
func mayBeNumber(text []byte) bool {
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9', c == '.', c == '+', c == '-', c == '_', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		case c == 'x' || c == 'X' || c == 'o' || c == 'O':
		case text[min(i, 1)] == '.' || text[0] == '.': // such as .inf and -.inf
		default:
			return false
		}
	}
	return true
}

// isDecimal reports whether the text is a number of JSON without an exponent.
func isDecimal(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("-"))
	whole, fraction, dot := bytes.Cut(text, []byte("."))
	return allDigits(whole) && (len(whole) == 1 || whole[0] != '0') && (!dot || allDigits(fraction))
}

func allDigits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}

var yamlFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// isNumber reports whether the library may read the text as a number.
func isNumber(text string) bool {
	plain := strings.ReplaceAll(text, "_", "")
	if _, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return true
	}
	if _, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return true
	}
	unsigned := strings.TrimLeft(plain, "+-")
	return yamlFloat.MatchString(plain) || strings.HasPrefix(unsigned, "0b") || strings.HasPrefix(unsigned, "0o") || strings.HasPrefix(unsigned, ".")
}
