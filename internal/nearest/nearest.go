// Package nearest finds the word that somebody probably meant.
package nearest

import "strings"

// Of returns the candidate closest to the word, if one is close enough to be
// worth suggesting. Case does not count; ties go to the first candidate.
func Of(word string, candidates []string) (string, bool) {
	const longest = 100 // nobody mistypes a longer name by a letter
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
	return best, best != ""
}

// Hint is "; did you mean …?", or the list of what there is when it is short, or nothing.
func Hint(word string, candidates []string) string {
	if c, ok := Of(word, candidates); ok {
		return `; did you mean "` + c + `"?`
	}
	if len(candidates) > 0 && len(candidates) <= 8 {
		return "; known: " + strings.Join(candidates, ", ")
	}
	return ""
}

// distance is Levenshtein's, a transposed pair of letters counting once.
func distance(a, b string) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
