package printable_test

import (
	"testing"

	"github.com/berth-project/berth/internal/printable"
)

func TestText(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"empty":           {"", ""},
		"plain":           {"LlamaForCausalLM", "LlamaForCausalLM"},
		"other scripts":   {"模型 × 2 … é", "模型 × 2 … é"},
		"a mark":          {"a�b", "a�b"},
		"escape sequence": {"\x1b[31mred", "�[31mred"},
		"line break":      {"a\r\nFAKE\tb", "a��FAKE�b"},
		"delete":          {"a\x7fb", "a�b"},
		"C1":              {"a\u009b31mb", "a�31mb"},
		"C1 as byte":      {"a\x9b31mb", "a�31mb"},
		"incomplete rune": {"a\xe2\x80", "a��"},
		"surrogate":       {"\xed\xa0\x80", "���"},
		"bidi overrides":  {"a\u202ab\u202e\u2066c\u2069", "a�b��c�"},
		"bidi marks":      {"a\u200e\u200f\u061cb", "a���b"},
		"zero width":      {"a\u200b\ufeffb", "a��b"},
		"line separators": {"a\u2028\u2029\u0085b", "a���b"},
		"tags":            {"a\U000e0041b", "a�b"},
		"no-break space":  {"a\u00a0b", "a�b"},
	}
	for name, tc := range tests {
		got := printable.Text(tc.text)
		if got != tc.want {
			t.Errorf("%s: %q becomes %q, want %q", name, tc.text, got, tc.want)
		}
		if !printable.All(got) || printable.All(tc.text) != (tc.text == tc.want) {
			t.Errorf("%s: All(%q) is %t, All(%q) is %t", name, tc.text, printable.All(tc.text), got, printable.All(got))
		}
	}
}
