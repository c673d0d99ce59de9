// Package nearest finds the known word that is most similar to a misspelled one.
package nearest

import (
	"slices"
	"strings"
)

// Find returns the candidate that is most similar to the word, and false if none is
// similar enough to be suggested. Case is ignored. If several candidates are equally
// similar, the first one is returned. If none is similar, it returns the only candidate that
// has the word as a part between dashes, such as NVIDIA-L4 for L4.
func Find(word string, candidates []string) (string, bool) {
	const longest = 100 // longer words are ignored, to bound the time
	if len(word) > longest {
		return "", false
	}
	w := strings.ToLower(word)
	best, least := "", len(w)/3+2
	for _, c := range candidates {
		if len(c) > longest {
			continue
		}
		if d := distance(w, strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	if best == "" {
		best = withPart(w, candidates)
	}
	return best, best != ""
}

// withPart returns the only candidate of which the word is a part between dashes, and "" if
// there is none or there are several.
func withPart(word string, candidates []string) string {
	found := ""
	for _, c := range candidates {
		if word == "" || !slices.Contains(strings.Split(strings.ToLower(c), "-"), word) {
			continue
		}
		if found != "" {
			return ""
		}
		found = c
	}
	return found
}

// Hint returns the end of an error message about an unknown word: `; did you mean "x"?` if
// a candidate is similar, "; known: x, y" if there are at most eight candidates, and ""
// otherwise.
func Hint(word string, candidates []string) string {
	if c, ok := Find(word, candidates); ok {
		return `; did you mean "` + c + `"?`
	}
	if len(candidates) > 0 && len(candidates) <= 8 {
		return "; known: " + strings.Join(candidates, ", ")
	}
	return ""
}

// distance returns the Levenshtein distance, in which the transposition of two adjacent
// letters counts as one edit.
func distance(a, b string) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			substitution := 1
			if a[i-1] == b[j-1] {
				substitution = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+substitution)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
