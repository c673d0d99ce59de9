// Package phrase makes parts of messages: values that come from outside, choices
// and suggestions.
package phrase

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/nearest"
)

// Quote returns the value in quotes. Characters that a terminal could obey are
// escaped, and a long value is cut off.
func Quote(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "…"
	}
	return strconv.Quote(s)
}

// Clip is Quote without the quotes.
func Clip(s string) string {
	q := Quote(s)
	if strings.HasSuffix(q, "…") {
		return strings.Trim(q, `"…`) + "…"
	}
	return q[1 : len(q)-1]
}

// Suggestion ends a sentence about a name that does not exist: it asks whether
// the most similar of the candidates is meant. It is empty if none is similar.
func Suggestion(name string, candidates []string) string {
	if n, ok := nearest.Find(name, candidates); ok {
		return "; did you mean " + Quote(n) + "?"
	}
	return ""
}

// Either lists things to choose from: "16 or 8", "a, b or c".
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
