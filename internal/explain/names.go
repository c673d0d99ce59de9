package explain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names maps names to the texts that stand for them in a table or picture.
type Names map[string]string

// Shorten returns texts of at most width columns for the names. Names that are short enough are
// not changed. Of the others, the beginning and the end that they have in common are cut first.
// Different names have different texts: a name for which the width is not enough stays whole.
func Shorten(names []string, width int) Names {
	out := Names{}
	var long []string
	for _, n := range names {
		if out[n] == "" {
			if out[n] = n; len([]rune(n)) > width {
				long = append(long, n)
			}
		}
	}
	shortenAlike(out, long, width)
	used := map[string]int{}
	for _, text := range out {
		used[text]++
	}
	for name, text := range out {
		if used[text] > 1 {
			out[name] = name
		}
	}
	return out
}

// shortenAlike sets the texts of different names that are too long. Names that get the same text
// are shortened again by themselves, because they have more in common than all names have.
func shortenAlike(out Names, names []string, width int) {
	prefix, suffix := inCommon(names)
	if families := byFirstWord(names); prefix+suffix == 0 && len(families) > 1 {
		for _, f := range families {
			shortenAlike(out, f, width)
		}
		return
	}
	middle := 0
	for _, n := range names {
		middle = max(middle, len([]rune(n))-prefix-suffix)
	}
	byText := map[string][]string{}
	for _, n := range names {
		out[n] = cut([]rune(n), prefix, suffix, middle, width)
		byText[out[n]] = append(byText[out[n]], n)
	}
	for _, n := range names {
		alike := byText[out[n]]
		switch {
		case len(alike) < 2 || alike[0] != n:
		case len(alike) == len(names):
			for _, a := range alike {
				out[a] = a
			}
		default:
			shortenAlike(out, alike, width)
		}
	}
}

// byFirstWord divides the names by what they have before the first separator, such as names of
// different node pools.
func byFirstWord(names []string) [][]string {
	var out [][]string
	at := map[string]int{}
	for _, n := range names {
		word := n
		if i := strings.IndexFunc(n, func(r rune) bool { return !isWord(r) }); i >= 0 {
			word = n[:i]
		}
		k, known := at[word]
		if !known {
			k = len(out)
			at[word] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], n)
	}
	return out
}

// inCommon returns how many characters all names have in common at their beginning and at their
// end. A number that differs is not divided, and the common end begins at a separator.
func inCommon(names []string) (prefix, suffix int) {
	if len(names) < 2 {
		return 0, 0
	}
	first := []rune(names[0])
	shortest := len(first)
	prefix, suffix = len(first), len(first)
	for _, n := range names[1:] {
		r := []rune(n)
		shortest = min(shortest, len(r))
		prefix, suffix = min(prefix, len(r)), min(suffix, len(r))
		for i := range prefix {
			if r[i] != first[i] {
				prefix = i
				break
			}
		}
		for i := range suffix {
			if r[len(r)-1-i] != first[len(first)-1-i] {
				suffix = i
				break
			}
		}
	}
	for prefix > 0 && isDigit(first[prefix-1]) {
		prefix--
	}
	for suffix > 0 && isWord(first[len(first)-suffix]) {
		suffix--
	}
	return prefix, min(suffix, shortest-prefix)
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isWord(r rune) bool { return isDigit(r) || unicode.IsLetter(r) }

// cut shortens a name of which the first prefix and the last suffix characters are those of the
// other names too. The parameter middle is the largest number of characters between them.
func cut(r []rune, prefix, suffix, middle, width int) string {
	if prefix+suffix == 0 {
		return Clip(string(r), width)
	}
	own, tail := string(r[prefix:len(r)-suffix]), ""
	if suffix > 0 {
		tail = "…"
	}
	room := width - middle - utf8.RuneCountInString(tail)
	switch {
	case room >= prefix:
		return string(r[:prefix]) + own + tail
	case room >= 1:
		return strings.TrimRight(string(r[:room-1]), "-._") + "…" + own + tail
	}
	mark := ""
	if prefix > 0 {
		mark = "…"
	}
	return mark + Clip(own, max(3, width-utf8.RuneCountInString(mark+tail))) + tail
}

// Clip shortens a text to the width. It cuts the middle, because names usually differ at their
// beginning or end.
func Clip(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	head := (width - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(width-1-head):])
}
