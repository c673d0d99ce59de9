// Package english forms English text: nouns in singular and plural, numbers with separators, and lists.
package english

import "strconv"

// Count is a number with its noun: "1 node", "2 nodes".
func Count[T int | int64](n T, noun string) string {
	return strconv.FormatInt(int64(n), 10) + " " + Noun(n, noun)
}

// Noun is the noun in the form that so many of it take.
func Noun[T int | int64](n T, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// Thousands is a number with commas, as in 131,072.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
