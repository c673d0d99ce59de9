// Package printable makes text from files safe to show. A terminal obeys control
// characters, and bidirectional overrides make text look like what it is not.
package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mark stands where something was that cannot be printed.
const Mark = string(unicode.ReplacementChar)

// Is reports whether the character is one to look at: it cannot move a terminal's
// cursor, begin another line or hide what stands beside it.
func Is(r rune) bool { return unicode.IsPrint(r) }

// All reports whether the text is valid UTF-8 and all of it is printable.
func All(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !Is(r) })
}

// Text is the text with a mark for each character that is not printable, and for
// each byte that is not valid UTF-8.
func Text(s string) string {
	if All(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if Is(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
