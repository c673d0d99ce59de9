// Package english formats numbers and nouns for English text.
package english

import "strconv"

// Count returns a number with its noun, such as "1 node" or "2 nodes".
func Count[T int | int64](n T, noun string) string {
	return strconv.FormatInt(int64(n), 10) + " " + Noun(n, noun)
}

// Noun returns the noun as it is written after the number n: with an "s" unless n is 1.
func Noun[T int | int64](n T, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// Thousands returns a number with commas, such as "131,072". It must not be negative.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
