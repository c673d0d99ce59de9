package anonymize

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// table replaces the names of one kind of thing, such as nodes. Names are collected first.
// After seal, each name has an alias, and aliases have the order of the names.
//
// If nest is set, the order is also that of texts that begin with the names and continue
// with "-" or "/", as the IDs of replicas and tasks do: the names a and a-b become node-1
// and node-1-x1, since "a/0" is after "a-b/0" although "a" is before "a-b".
type table struct {
	stem   string // of the aliases
	nest   bool
	keep   func(string) bool // names that are their own alias; nil means none
	alias  map[string]string
	sealed bool
}

// of returns the alias of a name. Before seal, it records the name and returns it.
// The alias of "" is "".
func (t *table) of(name string) string {
	if name == "" {
		return ""
	}
	if t.sealed {
		return t.alias[name]
	}
	if t.alias == nil {
		t.alias = map[string]string{}
	}
	t.alias[name] = name
	return name
}

// has reports whether the name was recorded.
func (t *table) has(name string) bool { return t.alias[name] != "" }

// seal gives each name an alias.
func (t *table) seal() {
	names := slices.Sorted(maps.Keys(t.alias))
	var nested, top []string
	for _, name := range names {
		switch {
		case t.keep != nil && t.keep(name):
		case t.nest && t.parent(name) != "":
			nested = append(nested, name)
		default:
			top = append(top, name)
		}
	}
	t.number(names, top)
	t.sealNested(nested)
	t.sealed = true
}

// number gives aliases to the names in top, between the names that are kept.
func (t *table) number(names, top []string) {
	var kept []string
	for _, name := range names {
		if t.keep != nil && t.keep(name) {
			kept = append(kept, name)
		}
	}
	width := max(4, len(fmt.Sprint(len(top))))
	stem, next := "", -1 // next is the index of the first name in kept that is after the stem
	for i, name := range top {
		if at, _ := slices.BinarySearch(kept, name); at != next {
			next = at
			stem = t.stemBetween(kept, next)
		}
		t.alias[name] = fmt.Sprintf("%s-%0*d", stem, width, i+1)
	}
}

// stemBetween returns a stem such that aliases with it are between the names kept[next-1]
// and kept[next].
func (t *table) stemBetween(kept []string, next int) string {
	low, high := "", ""
	if next > 0 {
		low = kept[next-1]
	}
	if next < len(kept) {
		high = kept[next]
	}
	candidates := []string{t.stem}
	for c := 'a'; c <= 'z'; c++ {
		candidates = append(candidates, string(c)+"-"+t.stem)
	}
	for c := '0'; c <= '9'; c++ {
		candidates = append(candidates, string(c)+"-"+t.stem)
	}
	candidates = append(candidates, low+"z", low+"-"+t.stem)
	for _, c := range candidates {
		if t.nest && low != "" && strings.HasPrefix(c, low+"-") {
			continue
		}
		if low < c+"-0" && (high == "" || c+"-:" < high) { // ":" is after all digits
			return c
		}
	}
	return t.stem // the order is lost, which the comparison of the decisions may report
}

// parent returns the longest name in the table after which the given name continues with a
// separator; "" if there is none.
func (t *table) parent(name string) string {
	for i := len(name) - 1; i > 0; i-- {
		if isSeparator(name[i]) {
			if _, ok := t.alias[name[:i]]; ok {
				return name[:i]
			}
		}
	}
	return ""
}

func isSeparator(c byte) bool { return c == '-' || c == '.' }

// sealNested gives aliases to names that have a parent. Leading numbers are kept, because
// they are compared with the numbers of replicas and tasks.
func (t *table) sealNested(nested []string) {
	rests := map[string][]string{} // what follows a text that is kept, sorted
	for _, name := range nested {
		if head, rest := t.split(name); rest != "" {
			rests[head] = append(rests[head], rest)
		}
	}
	// A parent is shorter than the names below it.
	slices.SortStableFunc(nested, func(a, b string) int { return len(a) - len(b) })
	for _, name := range nested {
		parent := t.parent(name)
		head, rest := t.split(name)
		alias := t.alias[parent] + head[len(parent):]
		if rest != "" {
			i, _ := slices.BinarySearch(rests[head], rest)
			alias += fmt.Sprintf("x%0*d", len(fmt.Sprint(len(rests[head]))), i+1)
		}
		t.alias[name] = alias
	}
}

// split splits a name with a parent into the parent with the separators and digits after
// it, and the rest, which begins with a letter or is empty.
func (t *table) split(name string) (head, rest string) {
	i := len(t.parent(name))
	for i < len(name) && (isSeparator(name[i]) || isDigit(name[i])) {
		i++
	}
	return name[:i], name[i:]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
