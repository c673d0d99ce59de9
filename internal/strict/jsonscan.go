package strict

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of the JSON that is decoded without a tree. Other JSON is decoded as YAML.
const (
	maxJSONDepth = maxDepth - 10
	maxJSONKey   = 1000 // bytes; the library of YAML accepts 1024 characters
)

// scanner reads JSON and keeps track of the position. It accepts only what YAML reads in the
// same way: no tabs and carriage returns between values, no line break between a key and its
// colon, no keys that are long or have escape sequences. Once it has met anything else, bad is set and it stays at the end.
type scanner struct {
	data  []byte
	at    int
	depth int
	bad   bool
	// line is the current line, counted from 0; lineStart is the index of its first byte, from
	// which the bytes that continue a character are subtracted, so that columns are characters.
	line, lineStart int
}

func (s *scanner) fail() {
	s.bad = true
	s.at = len(s.data)
}

func (s *scanner) position() Position { return Position{s.line + 1, s.at - s.lineStart + 1} }

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	data, at := s.data, s.at
	for at < len(data) {
		c := data[at]
		if c != ' ' && c != '\n' {
			s.at = at
			return c
		}
		if at++; c == '\n' {
			s.line++
			s.lineStart = at
		}
	}
	s.at = at
	return 0
}

// take skips white space and the given byte, and fails if another byte is next.
func (s *scanner) take(c byte) {
	if s.peek() != c {
		s.fail()
		return
	}
	s.at++
}

// value skips one value.
func (s *scanner) value() {
	switch c := s.peek(); {
	case c == '"':
		s.str()
	case c == '{':
		s.object(func([]byte) { s.value() })
	case c == '[':
		s.list(s.value)
	case c == '-' || c >= '0' && c <= '9':
		s.number()
	default:
		s.word()
	}
}

// object reads an object. It calls each with every key. The
// function reads the value.
func (s *scanner) object(each func(key []byte)) {
	s.take('{')
	if s.depth++; s.depth > maxJSONDepth {
		s.fail()
	}
	for first := true; !s.bad && s.peek() != '}'; first = false {
		if !first {
			s.take(',')
		}
		s.peek()
		key := s.str()
		for s.at < len(s.data) && s.data[s.at] == ' ' {
			s.at++
		}
		if len(key) > maxJSONKey || string(key) == "<<" || bytes.IndexByte(key, '\\') >= 0 || s.at >= len(s.data) || s.data[s.at] != ':' {
			s.fail()
			return
		}
		s.at++
		each(key)
	}
	s.take('}')
	s.depth--
}

// list reads a list and calls each for every entry, which the function reads.
func (s *scanner) list(each func()) {
	s.take('[')
	if s.depth++; s.depth > maxJSONDepth {
		s.fail()
	}
	for first := true; !s.bad && s.peek() != ']'; first = false {
		if !first {
			s.take(',')
		}
		each()
	}
	s.take(']')
	s.depth--
}

// str reads a string and returns what is between the quotes. Escape sequences are left as they
// are.
func (s *scanner) str() []byte {
	if s.at >= len(s.data) || s.data[s.at] != '"' {
		s.fail()
		return nil
	}
	from := s.at + 1
	for i := from; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.at = i + 1
			return s.data[from:i]
		case c == '\\':
			if i++; !validEscape(s.data[i:]) {
				s.fail()
				return nil
			}
		case c < ' ':
			s.fail()
			return nil
		case c >= utf8.RuneSelf:
			if c&0xc0 == 0x80 {
				s.lineStart++
			}
		}
	}
	s.fail()
	return nil
}

// validEscape reports whether the text begins with what may follow a backslash, and the library
// of YAML accepts
// it too. It accepts neither an escaped slash nor halves of surrogate pairs.
func validEscape(text []byte) bool {
	if len(text) == 0 || text[0] != 'u' {
		return len(text) > 0 && bytes.IndexByte([]byte(`"\bfnrt`), text[0]) >= 0
	}
	r, ok := codePoint(text)
	return ok && !utf16.IsSurrogate(r)
}

// codePoint returns the character of an escape sequence of which the text begins with u.
func codePoint(text []byte) (rune, bool) {
	if len(text) < 5 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[1:5]), 16, 32)
	return rune(n), err == nil
}

// number reads a number and returns it.
func (s *scanner) number() []byte {
	from := s.at
	digits := func() {
		start := s.at
		for s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9' {
			s.at++
		}
		if s.at == start {
			s.fail()
		}
	}
	next := func(c string) bool { return s.at < len(s.data) && bytes.IndexByte([]byte(c), s.data[s.at]) >= 0 }
	if next("-") {
		s.at++
	}
	if next("0") {
		s.at++
	} else {
		digits()
	}
	if next(".") {
		s.at++
		digits()
	}
	if next("eE") {
		s.at++
		if next("+-") {
			s.at++
		}
		digits()
	}
	if s.bad || !s.ended() {
		s.fail()
		return nil
	}
	return s.data[from:s.at]
}

// ended reports whether a number or a word ends here.
func (s *scanner) ended() bool {
	return s.at >= len(s.data) || bytes.IndexByte([]byte(" \n,]}"), s.data[s.at]) >= 0
}

// word reads true, false or null, and returns its first letter.
func (s *scanner) word() byte {
	for _, w := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.data[s.at:], []byte(w)) {
			if s.at += len(w); s.ended() {
				return w[0]
			}
			break
		}
	}
	s.fail()
	return 0
}
