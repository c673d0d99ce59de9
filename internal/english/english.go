// Package english formats numbers and nouns for messages in English.
package english

import "strconv"

// Count returns the number and the noun, in its plural unless n is 1: "1 node", "2 nodes".
func Count[T int | int64](n T, noun string) string {
	return strconv.FormatInt(int64(n), 10) + " " + Noun(n, noun)
}

// Noun returns the noun if n is 1, and otherwise its plural, which is the noun and an "s".
func Noun[T int | int64](n T, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// Thousands returns the number with a comma after every three digits, as in 131,072. The
// number must not be negative.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
