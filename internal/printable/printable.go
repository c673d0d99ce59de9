// Package printable makes text from files safe to print. Control characters could control
// the terminal, and bidirectional overrides could change how the text around them looks.
package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mark replaces a character that is not printable.
const Mark = string(unicode.ReplacementChar)

// Is reports whether the character is visible and harmless: it cannot move the cursor of
// a terminal, begin a new line or hide other characters.
func Is(r rune) bool { return unicode.IsPrint(r) }

// All reports whether the text is valid UTF-8 and all of it is printable.
func All(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !Is(r) })
}

// Text returns the text with Mark in place of each character that is not printable, and
// of each byte that is not valid UTF-8.
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
