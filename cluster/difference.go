package cluster

import (
	"encoding/json"
	"slices"
	"strings"
)

// Lines returns the State as JSON, one object per line, for Difference.
func (s *State) Lines() []string {
	b, err := json.Marshal(s.Snapshot())
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.ReplaceAll(string(b), "},{", "},\n{"), "\n")
}

// Difference returns the lines that are only in the first list, each with the prefix
// "- ", followed by those that are only in the second, with the prefix "+ ".
func Difference(first, second []string) string {
	return strings.Join(append(onlyIn(first, second, "- "), onlyIn(second, first, "+ ")...), "\n")
}

// onlyIn returns the lines that are only in the first list, each with the prefix mark.
func onlyIn(first, second []string, mark string) (out []string) {
	for _, line := range first {
		if !slices.Contains(second, line) {
			out = append(out, mark+line)
		}
	}
	return out
}
