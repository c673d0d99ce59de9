package manifest

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/internal/nearest"
)

// suggestion is the end of a sentence about a name that is not there: the
// nearest that is, or nothing.
func suggestion(name string, there []string) string {
	if n, ok := nearest.Of(name, there); ok {
		return "; did you mean " + quote(n) + "?"
	}
	return ""
}

// didYouMean is suggestion, or all that there is where that is little.
func didYouMean(word string, there []string) string { return nearest.Hint(word, there) }

// oneOf joins names for a choice.
func oneOf(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// words are the names of values.
func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// either lists things to choose from: "16 or 8", "a, b or c".
func either[T any](list []T) string {
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
