package explain

import (
	"cmp"
	"slices"
	"strings"
)

// CompareNatural orders names as people read them: numbers in names are compared as numbers, so
// that replica-2 is before replica-10. It returns 0 only for equal names.
func CompareNatural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		n, m := digits(x), digits(y)
		if n > 0 && m > 0 {
			if c := compareNumbers(x[:n], y[:m]); c != 0 {
				return c
			}
			x, y = x[n:], y[m:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits returns how many digits the text begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// NaturalOrder returns the items in an order for people. Items that are next to each other, and
// whose names differ only in numbers, are sorted by these numbers. All other items keep their
// places, because the order of a result says what was decided first.
func NaturalOrder[T any](items []T, name func(*T) string) []T {
	pattern, of := "", (*T)(nil)
	return NaturalRuns(items, name, func(first, other *T) bool {
		if of != first {
			pattern, of = withoutNumbers(name(first)), first
		}
		return withoutNumbers(name(other)) == pattern
	})
}

// NaturalRuns returns the items with those that are next to each other, and equal to the first of
// them in rank, sorted by name. It is for items that are sorted by something else than their names.
func NaturalRuns[T any](items []T, name func(*T) string, equal func(first, other *T) bool) []T {
	out := slices.Clone(items)
	for i := 0; i < len(out); {
		k := i + 1
		for k < len(out) && equal(&out[i], &out[k]) {
			k++
		}
		slices.SortStableFunc(out[i:k], func(a, b T) int { return CompareNatural(name(&a), name(&b)) })
		i = k
	}
	return out
}

// naturalNames is NaturalOrder for names.
func naturalNames(names []string) []string {
	return NaturalOrder(names, func(name *string) string { return *name })
}

// withoutNumbers returns the name with "#" for each number in it.
func withoutNumbers(name string) string {
	var b strings.Builder
	for name != "" {
		if n := digits(name); n > 0 {
			b.WriteByte('#')
			name = name[n:]
			continue
		}
		b.WriteByte(name[0])
		name = name[1:]
	}
	return b.String()
}
