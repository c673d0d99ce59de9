// Package phrase formats parts of messages: values of users' files, choices and
// suggestions.
package phrase

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/nearest"
)

// Quote returns the value in quotes. Characters that are not printable are escaped, and
// a value of more than 60 bytes is cut off and ends with "…".
func Quote(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "…"
	}
	return strconv.Quote(s)
}

// Clip returns the result of Quote without the quotes.
func Clip(s string) string {
	q := Quote(s)
	if strings.HasSuffix(q, "…") {
		return strings.Trim(q, `"…`) + "…"
	}
	return q[1 : len(q)-1]
}

// Suggestion returns the end of a sentence about an unknown name, `; did you mean "x"?`,
// with the most similar of the candidates. It returns "" if none is similar.
func Suggestion(name string, candidates []string) string {
	if n, ok := nearest.Find(name, candidates); ok {
		return "; did you mean " + Quote(n) + "?"
	}
	return ""
}

// Either returns the values as a list of choices: "16 or 8", "a, b or c".
func Either[T any](list []T) string {
	var b strings.Builder
	for i, x := range list {
		switch {
		case i == 0:
		case i == len(list)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, x)
	}
	return b.String()
}
