package cluster

import (
	"encoding/json"
	"slices"
	"strings"
)

// Lines is the State as JSON, one object a line. Difference tells two States apart by them.
func (s *State) Lines() []string {
	b, err := json.Marshal(s.Snapshot())
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.ReplaceAll(string(b), "},{", "},\n{"), "\n")
}

// Difference lists the lines that only the first list has, marked "- ", and those
// that only the second has, marked "+ ".
func Difference(first, second []string) string {
	return strings.Join(append(onlyIn(first, second, "- "), onlyIn(second, first, "+ ")...), "\n")
}

// onlyIn are the lines of the first list that the second does not have, marked.
func onlyIn(first, second []string, mark string) (out []string) {
	for _, line := range first {
		if !slices.Contains(second, line) {
			out = append(out, mark+line)
		}
	}
	return out
}
