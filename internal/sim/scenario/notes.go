package scenario

import (
	"slices"
	"strconv"
	"strings"
)

// checkNotes compares the notes about how the input was read with the parts that are expected. Nil
// means that they are not compared.
func checkNotes(parts, notes []string) []Mismatch {
	if parts == nil {
		return nil
	}
	var out []Mismatch
	for _, part := range parts {
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, part) }) {
			out = append(out, Mismatch{"notes", strconv.Quote(part), "no such note"})
		}
	}
	for _, n := range notes {
		if !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(n, part) }) {
			out = append(out, Mismatch{"notes", "no other note", strconv.Quote(n)})
		}
	}
	return out
}
