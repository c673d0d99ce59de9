package command

import (
	"io"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/berth-project/berth/internal/printable"
)

// textWriter replaces control characters, which a terminal would obey, by
// printable.Mark. Strings are made printable when they are read; textWriter is a
// second safeguard, for file names and for strings that were missed. JSON and YAML
// stay valid, because such characters occur only inside strings.
type textWriter struct {
	w     io.Writer
	color bool   // the color sequences of pictures are kept
	rest  []byte // the first bytes of a character that the last write did not end
}

// colorSequence matches the only escape sequences that pictures write.
var colorSequence = regexp.MustCompile(`^\x1b\[(0|2|3[1-6]|9[2-6])m`)

func (t *textWriter) Write(p []byte) (int, error) {
	n := len(p)
	if len(t.rest) > 0 {
		p, t.rest = slices.Concat(t.rest, p), nil
	}
	from := 0 // the bytes before this index are written
	for at := 0; at < len(p); {
		r, size := utf8.DecodeRune(p[at:])
		invalid := r == utf8.RuneError && size == 1
		switch {
		case r == '\n' || r == '\t' || printable.Is(r) && !invalid:
			at += size
			continue
		case invalid && !utf8.FullRune(p[at:]):
			t.rest = slices.Clone(p[at:])
			p = p[:at]
			continue
		case r == '\x1b' && t.color:
			if c := colorSequence.Find(p[at:]); c != nil {
				at += len(c)
				continue
			}
		}
		if _, err := t.w.Write(p[from:at]); err != nil {
			return 0, err
		}
		if _, err := io.WriteString(t.w, printable.Mark); err != nil {
			return 0, err
		}
		at += size
		from = at
	}
	_, err := t.w.Write(p[from:])
	return n, err
}
