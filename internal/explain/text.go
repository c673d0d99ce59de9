package explain

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// List joins names as in a sentence: "a, b and c". If there are more than most names, it counts
// the rest: "a, b and 3 more". Names that are next to each other, and differ only in numbers, are
// in the order of these.
func List(names []string, most int) string { return listInOrder(naturalNames(names), most) }

// listInOrder is List for names of which the order says something.
func listInOrder(names []string, most int) string {
	switch {
	case len(names) == 0:
		return ""
	case len(names) == 1:
		return names[0]
	case len(names) > most:
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// textWidth is the width of reports, in columns. Tables of numbers may be wider.
const textWidth = 80

// Wrap writes a text in lines of at most width columns. The first line begins with first, and
// the other lines begin with indent.
func Wrap(w io.Writer, text, first, indent string, width int) {
	line, empty := first, true
	for _, word := range strings.Fields(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			fmt.Fprintln(w, line)
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	fmt.Fprintln(w, line)
}

func wrapped(w io.Writer, text, first, indent string) { Wrap(w, text, first, indent, textWidth) }

// sentences writes each text that is not empty on a new line.
func sentences(w io.Writer, first string, texts ...string) {
	for _, text := range texts {
		if text != "" {
			wrapped(w, text, first, "  ")
		}
	}
}

// ifOne returns the first text if n is 1, and the second otherwise.
func ifOne(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
