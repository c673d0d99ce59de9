package command

import (
	"io"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/berth-project/berth/internal/printable"
)

// textWriter puts a mark where characters were that a terminal would obey. Strings
// are made printable where they are read; this is the net below, for file names and
// for what is forgotten. JSON and YAML stay valid: marks come only where characters
// of strings were.
type textWriter struct {
	w     io.Writer
	color bool   // the colours of pictures may pass
	rest  []byte // of a character that the last write cut off
}

// colour is what pictures write, and all that they do.
var colour = regexp.MustCompile(`^\x1b\[(0|2|3[1-6])m`)

func (t *textWriter) Write(p []byte) (int, error) {
	n := len(p)
	if len(t.rest) > 0 {
		p, t.rest = slices.Concat(t.rest, p), nil
	}
	from := 0 // what comes before is written
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
			if c := colour.Find(p[at:]); c != nil {
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
