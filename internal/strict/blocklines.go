package strict

import "bytes"

// blockLines is a place in a document of YAML. Once anything was met that is not read, bad is set
// and the place is the end.
type blockLines struct {
	data []byte // the document
	at   int
	bad  bool
	// line is the current line, counted from 0, and lineStart the index of its first byte.
	line, lineStart int
	// column is that of the next value or key, if the place is the beginning of one. It is -1 at
	// the end of the document.
	column int
}

func (l *blockLines) fail() {
	l.bad = true
	l.at, l.column = len(l.data), -1
}

// next moves from the beginning of a line to the next text that is not a comment.
func (l *blockLines) next() {
	l.nextLine()
	l.comments()
}

// comments skips comments if the reader is at the beginning of one.
func (l *blockLines) comments() {
	for l.column >= 0 && l.data[l.at] == '#' {
		l.skipLine()
		l.nextLine()
	}
}

// nextLine moves from the beginning of a line to the next text, which may be a comment.
func (l *blockLines) nextLine() {
	data, at := l.data, l.at
	for start := at; ; {
		for at < len(data) && data[at] == ' ' {
			at++
		}
		if at == len(data) {
			l.at, l.column = at, -1
			return
		}
		if data[at] != '\n' {
			l.at, l.lineStart, l.column = at, start, at-start
			return
		}
		at++
		start = at
		l.line++
	}
}

// skipLine moves to the beginning of the next line.
func (l *blockLines) skipLine() {
	end := bytes.IndexByte(l.data[l.at:], '\n')
	if end < 0 {
		l.at = len(l.data)
		return
	}
	l.at += end + 1
	l.line++
}

// spaces skips spaces.
func (l *blockLines) spaces() {
	for l.at < len(l.data) && l.data[l.at] == ' ' {
		l.at++
	}
}

// atEnd reports whether a value has ended: the rest of the line is empty or a comment. The reader
// is behind the spaces that follow the value.
func (l *blockLines) atEnd() bool {
	return l.at == len(l.data) || l.data[l.at] == '\n' || l.data[l.at] == '#' && l.data[l.at-1] == ' '
}

// endLine skips the rest of the line, which must be empty or a comment.
func (l *blockLines) endLine() {
	if l.spaces(); !l.atEnd() {
		l.fail()
		return
	}
	l.skipLine()
}

// isBlank reports whether the index is that of a space or of the end of a line.
func (l *blockLines) isBlank(at int) bool {
	return at >= len(l.data) || l.data[at] == ' ' || l.data[at] == '\n'
}

// isEntry reports whether the reader is at an entry of a list.
func (l *blockLines) isEntry() bool { return l.data[l.at] == '-' && l.isBlank(l.at+1) }

func (l *blockLines) atKey() bool {
	_, _, _, ok := l.findKey()
	return ok
}

// findKey returns the beginning and the end of the key at the reader, and the index behind its
// colon.
func (l *blockLines) findKey() (from, to, after int, ok bool) {
	data := l.data
	switch c := data[l.at]; {
	case c == '"', c == '\'':
		from, to, ok = l.quotedKey(c)
		after = to + 2
		return from, to, after, ok && l.isBlank(after)
	case !l.plainStart(l.at):
		return 0, 0, 0, false
	}
	for i := l.at; i < len(data); i++ {
		switch c := data[i]; {
		case c == ':' && l.isBlank(i+1):
			return l.at, i, i + 1, data[i-1] != ' '
		case c == '\n', c == '\t', c == '#' && data[i-1] == ' ':
			return 0, 0, 0, false
		}
	}
	return 0, 0, 0, false
}

// quotedKey returns the beginning and the end of the text in quotes at the reader, and whether it
// is in one line and followed by a colon.
func (l *blockLines) quotedKey(quote byte) (from, to int, ok bool) {
	from = l.at + 1
	n := bytes.IndexByte(l.data[from:], quote)
	if to = from + n; n < 0 || to+1 == len(l.data) || bytes.IndexByte(l.data[from:to], '\n') >= 0 {
		return 0, 0, false
	}
	return from, to, l.data[to+1] == ':'
}

// plainStart reports whether a text without quotes may begin at the index.
func (l *blockLines) plainStart(at int) bool {
	switch c := l.data[at]; c {
	case '-':
		return !l.isBlank(at+1) && l.data[at+1] != '\t'
	case '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', ' ', '\t', '\n':
		return false
	}
	return true
}
