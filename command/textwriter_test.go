package command

import (
	"io"
	"strings"
	"testing"
)

func TestTextWriter(t *testing.T) {
	tests := map[string]struct {
		writes []string
		color  bool
		want   string
	}{
		"plain":                  {writes: []string{"a\tb × 2\n", "", "c\n"}, want: "a\tb × 2\nc\n"},
		"control characters":     {writes: []string{"\x1b[31mred\r\n\x07\x7f\n"}, want: "�[31mred�\n��\n"},
		"C1 as rune and as byte": {writes: []string{"\u009b2J \x9b2J\n"}, want: "�2J �2J\n"},
		"direction overrides":    {writes: []string{"a\u202eb\u2069\n"}, want: "a�b�\n"},
		"a rune in two writes":   {writes: []string{"a\xe2\x80", "\xa6\n"}, want: "a…\n"},
		"override, three writes": {writes: []string{"a\xe2", "\x80", "\xaeb\n"}, want: "a�b\n"},
		"an incomplete rune":     {writes: []string{"a\xe2\x80", "b\n"}, want: "a��b\n"},
		"colors of pictures":     {writes: []string{"\x1b[2m·\x1b[0m \x1b[36mA\x1b[0m\n"}, color: true, want: "\x1b[2m·\x1b[0m \x1b[36mA\x1b[0m\n"},
		"other escape sequences": {writes: []string{"\x1b[2J\x1b[8mhidden\x1b]0;title\x07\n"}, color: true, want: "�[2J�[8mhidden�]0;title�\n"},
		"JSON stays valid":       {writes: []string{"{\"a\": \"\\u001b\u202e\"}\n"}, want: "{\"a\": \"\\u001b�\"}\n"},
		"a mark in the input":    {writes: []string{"a�b\n"}, want: "a�b\n"},
	}
	for name, tc := range tests {
		var b strings.Builder
		w := &textWriter{w: &b, color: tc.color}
		for _, s := range tc.writes {
			if n, err := io.WriteString(w, s); n != len(s) || err != nil {
				t.Errorf("%s: wrote %d of %d bytes, %v", name, n, len(s), err)
			}
		}
		if got := b.String(); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
